import Coffer
import Foundation

/// Values as JSON that reads back to the same storage class and the same bytes.
///
/// - integers as integers, all 64 bits; reals always with a point or an exponent;
/// - `{"$real":"Infinity"}`, `{"$real":"-Infinity"}`, `{"$base64":"…"}` for what JSON cannot say.
///
/// Our own writer, because `JSONEncoder` writes 1.0 as 1.
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

    private static let hexDigits = Array("0123456789abcdef".utf8)

    static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(0x22)
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5c:
                bytes.append(0x5c)
                bytes.append(byte)
            case 0x0a: bytes.append(contentsOf: "\\n".utf8)
            case 0x0d: bytes.append(contentsOf: "\\r".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case ..<0x20, 0x7f:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(hexDigits[Int(byte >> 4)])
                bytes.append(hexDigits[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
        bytes.append(0x22)
    }

    /// The value of one of our object forms; `nil` if it is none.
    static func special(member: String, text: String) -> Value? {
        switch (member, text) {
        case (realMember, "Infinity"): return .real(.infinity)
        case (realMember, "-Infinity"): return .real(-.infinity)
        case (blobMember, _): return Data(base64Encoded: text).map(Value.blob)
        default: return nil
        }
    }
}
