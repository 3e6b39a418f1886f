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
        case .integer(let integer): bytes.append(decimal: integer)
        case .real(let real): append(real, to: &bytes)
        case .text(let text): append(text, to: &bytes)
        case .blob(let data):
            bytes.append(contentsOf: "{\"\(blobMember)\":\"\(data.base64EncodedString())\"}".utf8)
        }
    }

    /// Writes a value without a copy of a long text or blob.
    static func write(_ value: BorrowedValue, _ output: inout StandardOutput) throws {
        switch value {
        case .null: output.buffer.append(contentsOf: "null".utf8)
        case .integer(let integer): output.buffer.append(decimal: integer)
        case .real(let real): append(real, to: &output.buffer)
        case .text(let text):
            output.buffer.append(0x22)
            try output.write(text: text, appendEscaped)
            output.buffer.append(0x22)
        case .blob(let blob):
            output.buffer.append(contentsOf: "{\"\(blobMember)\":\"".utf8)
            try output.write(blob: blob) { piece, bytes in
                bytes.append(contentsOf: Data(piece).base64EncodedData())
            }
            output.buffer.append(contentsOf: "\"}".utf8)
        }
    }

    private static func append(_ real: Double, to bytes: inout [UInt8]) {
        guard real.isFinite else {
            let name = real < 0 ? "-Infinity" : "Infinity"
            return bytes.append(contentsOf: "{\"\(realMember)\":\"\(name)\"}".utf8)
        }
        bytes.append(shortest: real)
    }

    static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        bytes.append(0x22)
        text.withUTF8 { appendEscaped($0, to: &bytes) }
        bytes.append(0x22)
    }

    /// Appends the inside of a JSON string.
    ///
    /// - Parameter text: UTF-8 of whole characters.
    private static func appendEscaped(
        _ text: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]
    ) {
        var start = 0
        var index = 0
        while index < text.count {
            let byte = text[index]
            if isPlain(byte) {
                index += 1
                continue
            }
            let end = index + (byte < 0x80 ? 1 : (~byte).leadingZeroBitCount)
            let character = UnsafeBufferPointer(rebasing: text[index..<end])
            if let escaped = escape(scalar(of: character)) {
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<index]))
                bytes.append(contentsOf: escaped.utf8)
                start = end
            }
            index = end
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start...]))
    }

    /// Whether the byte is a character that needs no escape.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte < 0x7f && byte != 0x22 && byte != 0x5c
    }

    /// The character that these bytes of UTF-8 are.
    private static func scalar(of character: UnsafeBufferPointer<UInt8>) -> Unicode.Scalar {
        guard character.count > 1 else { return Unicode.Scalar(character[0]) }
        var code = UInt32(character[0] & 0x7f >> UInt8(character.count))
        for byte in character.dropFirst() { code = code << 6 | UInt32(byte & 0x3f) }
        return Unicode.Scalar(code) ?? "\u{fffd}"
    }

    /// The escape for a character; `nil` if it needs none.
    private static func escape(_ scalar: Unicode.Scalar) -> String? {
        switch scalar {
        case "\"", "\\": "\\\(scalar)"
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: VisibleText.isHarmless(scalar) ? nil : codeEscape(scalar)
        }
    }

    /// Escapes the characters that a terminal would interpret; the JSON still reads back the same.
    static func harmless(_ json: String) -> String {
        guard !json.unicodeScalars.allSatisfy(VisibleText.isHarmless) else { return json }
        return json.unicodeScalars.reduce(into: "") { text, scalar in
            if VisibleText.isHarmless(scalar) {
                text.unicodeScalars.append(scalar)
            } else {
                text += codeEscape(scalar)
            }
        }
    }

    private static func codeEscape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.reduce(into: "") { text, unit in
            let digits = String(unit, radix: 16)
            text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// The value of one of the object forms above; `nil` for any other object.
    ///
    /// - Parameter text: Its memory takes the bytes of a blob.
    static func special(
        member: String, text: UnsafeMutableBufferPointer<UInt8>
    ) -> BorrowedValue? {
        switch member {
        case realMember:
            switch String(decoding: text, as: UTF8.self) {
            case "Infinity": .real(.infinity)
            case "-Infinity": .real(-.infinity)
            default: nil
            }
        case blobMember: decode(base64: text).map(BorrowedValue.blob)
        default: nil
        }
    }

    /// Decodes base64 in place, which has fewer bytes afterwards.
    private static func decode(
        base64 text: UnsafeMutableBufferPointer<UInt8>
    ) -> UnsafeRawBufferPointer? {
        guard let start = text.baseAddress else { return UnsafeRawBufferPointer(text) }
        let encoded = Data(bytesNoCopy: start, count: text.count, deallocator: .none)
        guard let blob = Data(base64Encoded: encoded) else { return nil }
        let raw = UnsafeMutableRawBufferPointer(text)
        raw.copyBytes(from: blob)
        return UnsafeRawBufferPointer(rebasing: raw[..<blob.count])
    }
}
