import Coffer
import Foundation

/// Values as SQL that reads back to the same storage class and the same bytes.
struct SQLLiteral {
    /// Asks the engine which number it reads from a text.
    private let cast: Statement

    /// - Parameter connection: Must be in a transaction.
    init(_ connection: Connection) throws {
        cast = try connection.prepare("SELECT CAST(? AS REAL)")
    }

    func append(_ value: Value, to bytes: inout [UInt8]) throws {
        switch value {
        case .null: bytes.append(contentsOf: "NULL".utf8)
        case .integer(.min):
            // The parser reads the digits without their sign, and that number is one too large.
            bytes.append(contentsOf: "(-9223372036854775807-1)".utf8)
        case .integer(let integer): bytes.append(contentsOf: String(integer).utf8)
        case .real(let real): bytes.append(contentsOf: try text(of: real).utf8)
        case .text(let text): Self.append(text, to: &bytes)
        case .blob(let data): Self.append(hex: data, to: &bytes)
        }
    }

    /// Casts text with a NUL or CR from a blob: a NUL would end the text of a statement, and the
    /// shells drop a CR at the end of a line.
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        let utf8 = text.utf8
        guard !utf8.contains(0), !utf8.contains(0x0d) else {
            bytes.append(contentsOf: "CAST(".utf8)
            append(hex: utf8, to: &bytes)
            return bytes.append(contentsOf: " AS TEXT)".utf8)
        }
        bytes.append(0x27)
        for byte in utf8 {
            if byte == 0x27 { bytes.append(byte) }
            bytes.append(byte)
        }
        bytes.append(0x27)
    }

    private static let digits = Array("0123456789abcdef".utf8)

    private static func append(hex data: some Sequence<UInt8>, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "X'".utf8)
        for byte in data {
            bytes.append(digits[Int(byte >> 4)])
            bytes.append(digits[Int(byte & 15)])
        }
        bytes.append(0x27)
    }

    // MARK: Reals

    /// SQLite does not round every decimal to the nearest double, so the engine checks each text:
    /// the shortest, then one with spare digits. If both fail, the text is an exact product.
    private func text(of real: Double) throws -> String {
        guard real.isFinite else { return real < 0 ? "-1e999" : "1e999" }
        // Near the smallest numbers, versions of the engine read the same decimal differently.
        if real != 0, abs(real) < 1e-270 { return Self.product(real) }
        let short = real.description
        if try isRead(short, as: real) { return short }
        let long = String(format: "%.19e", real)
        if try isRead(long, as: real) { return long }
        return Self.product(real)
    }

    private func isRead(_ text: String, as real: Double) throws -> Bool {
        try cast.bind([.text(text)])
        defer { try? cast.reset() }
        guard try cast.step(), case .real(let read) = try cast.value(at: 0) else { return false }
        return read.bitPattern == real.bitPattern
    }

    /// An integer times a power of two, in steps that are all exact.
    private static func product(_ real: Double) -> String {
        let significand = real.significand.sign == .minus ? -real.significand : real.significand
        let integer = Int64(significand * 4_503_599_627_370_496)
        var exponent = Int(real.exponent) - 52
        var text = (real < 0 ? "-" : "") + "\(integer).0"
        while exponent != 0 {
            let step = min(abs(exponent), 50)
            text += (exponent < 0 ? "/" : "*") + "\(1 << step).0"
            exponent += exponent < 0 ? step : -step
        }
        return "(\(text))"
    }
}
