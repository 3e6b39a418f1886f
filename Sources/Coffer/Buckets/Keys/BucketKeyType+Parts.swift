#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Stored keys of a type that only the file names.
extension BucketKeyType {
    /// The names of the parts in order; one for a simple key.
    package var partNames: [String] { parts.map(\.rawValue) }

    /// The parts of a stored key, each as a simple key of its type is stored.
    ///
    /// - Returns: `nil` for a value that no key of this type is stored as.
    package func parts(of stored: Value) -> [Value]? {
        guard isComposite else { return isKey(stored, parts[0]) ? [stored] : nil }
        guard case .blob(let bytes) = stored else { return nil }
        var unpacker = KeyUnpacker(bytes)
        var values: [Value] = []
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            guard let value = try? unpacker.next(part, isLast: isLast) else { return nil }
            values.append(value)
        }
        // Bytes of another form would become other bytes.
        return self.stored(values) == stored ? values : nil
    }

    /// The key with these parts as the file has it.
    ///
    /// - Returns: `nil` if the parts are not those of this type.
    package func stored(_ values: [Value]) -> Value? {
        guard values.count == parts.count else { return nil }
        guard zip(values, parts).allSatisfy({ isKey($0, $1) }) else { return nil }
        guard isComposite else { return values[0] }
        var packer = KeyPacker()
        for (index, part) in parts.enumerated() {
            let end: KeyPacker.End = index == parts.count - 1 ? .key : .part
            guard (try? packer.add(values[index], as: part, end: end)) != nil else { return nil }
        }
        return .blob(Data(packer.bytes))
    }

    /// Whether a simple key of the part's type is stored as this value.
    private func isKey(_ value: Value, _ part: Part) -> Bool {
        switch (part, value) {
        case (.text, .text), (.integer, .integer), (.date, .real), (.bytes, .blob): true
        case (.bool, .integer(let number)): number == 0 || number == 1
        case (.unsigned, .blob(let bytes)): bytes.count == 8
        case (.uuid, .blob(let bytes)): bytes.count == 16
        default: false
        }
    }
}
