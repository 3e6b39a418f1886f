import Coffer
import Foundation

/// A value on the command line: text, or typed by a prefix.
enum BoundValue {
    /// - Parameter store: Path of the store, which must not be read as a value.
    /// - Throws: `ToolError` `.usage`, which repeats the prefix but not the value.
    static func parse(_ argument: String, apartFrom store: String) throws -> Value {
        guard let colon = argument.firstIndex(of: ":") else { return .text(argument) }
        let rest = String(argument[argument.index(after: colon)...])
        switch argument[..<colon] {
        case "text": return .text(rest)
        case "null":
            guard rest.isEmpty else { throw unusable("null:", "takes no value") }
            return .null
        case "int":
            guard let integer = Int64(rest) else {
                throw unusable("int:", "needs an integer of 64 bits")
            }
            return .integer(integer)
        case "real":
            guard let real = Double(rest), !real.isNaN else {
                throw unusable("real:", "needs a number")
            }
            return .real(real)
        case "hex":
            guard let bytes = bytes(hex: rest) else {
                throw unusable("hex:", "needs an even number of hex digits")
            }
            return .blob(bytes)
        case "file":
            let file = try InputFile(rest, apartFrom: store)
            return .blob(Data(try file.readAll(maximumCount: 1_000_000_000)))
        default: return .text(argument)
        }
    }

    private static func unusable(_ prefix: String, _ reason: String) -> ToolError {
        ToolError(
            .usage, "\(prefix) \(reason)", hint: "Put text: before a value to take it as it is.")
    }

    private static func bytes(hex: String) -> Data? {
        let digits = hex.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        let nibbles = digits.compactMap { $0 }
        var bytes = Data(capacity: nibbles.count / 2)
        for place in stride(from: 0, to: nibbles.count, by: 2) {
            let byte: Int = nibbles[place] << 4 | nibbles[place + 1]
            bytes.append(UInt8(byte))
        }
        return bytes
    }
}
