import Coffer
import Foundation

/// Values as JSON that reads back to the same storage class and the same bytes.
///
/// - integers as integers, all 64 bits; reals always with a point or an exponent;
/// - `{"$real":"Infinity"}`, `{"$real":"-Infinity"}`, `{"$base64":"…"}` for values that JSON cannot
///   express.
///
/// A separate writer, because `JSONEncoder` writes 1.0 as 1.
enum JSONValue {
    static let realMember = "$real"
    static let blobMember = "$base64"

    static func append(_ value: Value, to bytes: inout [UInt8]) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .integer(let integer): bytes.append(contentsOf: String(integer).utf8)
        case .real(let real) where real.isFinite: bytes.append(contentsOf: real.description.utf8)
        case .real(let real):
            let name = real < 0 ? "-Infinity" : "Infinity"
            bytes.append(contentsOf: "{\"\(realMember)\":\"\(name)\"}".utf8)
        case .text(let text): append(text, to: &bytes)
        case .blob(let data):
            bytes.append(contentsOf: "{\"\(blobMember)\":\"\(data.base64EncodedString())\"}".utf8)
        }
    }

    static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(0x22)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                bytes.append(0x5c)
                bytes.append(UInt8(ascii: scalar))
            case "\n": bytes.append(contentsOf: "\\n".utf8)
            case "\r": bytes.append(contentsOf: "\\r".utf8)
            case "\t": bytes.append(contentsOf: "\\t".utf8)
            case _ where VisibleText.isHarmless(scalar): bytes.append(contentsOf: scalar.utf8)
            default: bytes.append(contentsOf: escape(scalar).utf8)
            }
        }
        bytes.append(0x22)
    }

    /// Escapes the characters that a terminal would interpret; the JSON still reads back the same.
    static func harmless(_ json: String) -> String {
        guard !json.unicodeScalars.allSatisfy(VisibleText.isHarmless) else { return json }
        return json.unicodeScalars.reduce(into: "") { text, scalar in
            if VisibleText.isHarmless(scalar) {
                text.unicodeScalars.append(scalar)
            } else {
                text += escape(scalar)
            }
        }
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.reduce(into: "") { text, unit in
            let digits = String(unit, radix: 16)
            text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// The value of one of the object forms above; `nil` for any other object.
    static func special(member: String, text: String) -> Value? {
        switch (member, text) {
        case (realMember, "Infinity"): return .real(.infinity)
        case (realMember, "-Infinity"): return .real(-.infinity)
        case (blobMember, _): return Data(base64Encoded: text).map(Value.blob)
        default: return nil
        }
    }
}
