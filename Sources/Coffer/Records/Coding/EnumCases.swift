/// The cases of an enum that has no payloads, made without the type's help.
///
/// A raw value or a coding key is such an enum, and nothing lists its names unless the type is
/// `CaseIterable`. Its values are numbers: "Cases are assigned tags in the order of their
/// declaration": <https://github.com/swiftlang/swift/blob/main/docs/ABI/TypeLayout.rst>.
enum EnumCases {
    /// The case with this number, from 0; `nil` if the type is another kind of type, has payloads,
    /// or has fewer cases.
    static func make<T>(_ type: T.Type, number: Int) -> T? {
        guard let count = count(of: type), number < count, MemoryLayout<T>.size <= 1 else {
            return nil
        }
        return withUnsafeTemporaryAllocation(of: T.self, capacity: 1) { memory in
            let bytes = UnsafeMutableRawBufferPointer(memory)
            if MemoryLayout<T>.size == 1 { bytes[0] = UInt8(truncatingIfNeeded: number) }
            return memory.baseAddress?.pointee
        }
    }

    /// The number of cases of an enum without payloads; `nil` for any other type.
    ///
    /// The second word of an enum's metadata refers to its descriptor, which counts the cases:
    /// <https://github.com/swiftlang/swift/blob/main/docs/ABI/TypeMetadata.rst>.
    static func count(of type: Any.Type) -> Int? {
        #if _ptrauth(_arm64e)
        // The reference to the descriptor is signed.
        return nil
        #else
        let words = unsafeBitCast(type, to: UnsafePointer<UInt>.self)
        guard words[0] == kindOfEnum, let descriptor = UnsafeRawPointer(bitPattern: words[1])
        else { return nil }
        // The upper 8 bits say where the size of the payload is.
        let payloadCount = descriptor.load(fromByteOffset: 20, as: UInt32.self) & 0xFF_FFFF
        let plainCount = descriptor.load(fromByteOffset: 24, as: UInt32.self)
        return payloadCount == 0 ? Int(plainCount) : nil
        #endif
    }

    private static let kindOfEnum: UInt = 0x201
}
