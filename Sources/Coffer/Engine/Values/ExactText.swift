extension String {
    /// The text of UTF-8 bytes; `nil` if they are not UTF-8.
    ///
    /// The bytes are not validated a second time when they are copied. `String(validating:as:)`
    /// costs twice as much and more.
    @inline(__always)
    init?(exactly bytes: UnsafeBufferPointer<UInt8>) {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
            self.init(repaired: bytes)
            return
        }
        let span = Span(_unsafeElements: bytes)
        if bytes.isASCII {
            // `isASCII` looks at eight bytes at a time, for half of what the validation costs.
            self.init(copying: UTF8Span(unchecked: span, isKnownASCII: true))
        } else if let text = try? UTF8Span(validating: span) {
            self.init(copying: text)
        } else {
            return nil
        }
    }

    /// `String(decoding:as:)` repairs bytes that are not UTF-8, so the bytes are unchanged if and
    /// only if they were valid.
    @inline(never)
    private init?(repaired bytes: UnsafeBufferPointer<UInt8>) {
        self.init(decoding: bytes, as: UTF8.self)
        guard bytes.isASCII || utf8.elementsEqual(bytes) else { return nil }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether the bytes are UTF-8.
    @inline(__always)
    var isUTF8: Bool { isASCII || isUTF8BeyondASCII }

    @inline(never)
    private var isUTF8BeyondASCII: Bool {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
            return String(exactly: self) != nil
        }
        return (try? UTF8Span(validating: Span(_unsafeElements: self))) != nil
    }

    /// Whether all bytes are below 128: such a text is UTF-8.
    @inline(__always)
    fileprivate var isASCII: Bool {
        let raw = UnsafeRawBufferPointer(self)
        guard count >= 8 else { return Self.bits(ofFew: raw) & 0x8080_8080 == 0 }
        // The last word may overlap the one before.
        let last = count &- 8
        var bits = raw.loadUnaligned(fromByteOffset: last, as: UInt64.self)
        var offset = 0
        while offset < last {
            bits |= raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            offset &+= 8
        }
        return bits & 0x8080_8080_8080_8080 == 0
    }

    /// The bitwise OR of fewer than 8 bytes, and of no others.
    @inline(__always)
    private static func bits(ofFew bytes: UnsafeRawBufferPointer) -> UInt32 {
        let count = bytes.count
        guard count < 4 else {
            // Both words are in the text, and may overlap.
            return bytes.loadUnaligned(as: UInt32.self)
                | bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
        }
        var bits: UInt32 = 0
        for byte in bytes { bits |= UInt32(byte) }
        return bits
    }
}
