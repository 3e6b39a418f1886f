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

    /// Writes a value without a copy of a long text or blob.
    func write(_ value: BorrowedValue, _ output: inout StandardOutput) throws {
        switch value {
        case .null: output.buffer.append(contentsOf: "NULL".utf8)
        case .integer(.min):
            // The parser reads the digits without their sign, and that number is one too large.
            output.buffer.append(contentsOf: "(-9223372036854775807-1)".utf8)
        case .integer(let integer): output.buffer.append(decimal: integer)
        case .real(let real): output.buffer.append(contentsOf: try text(of: real).utf8)
        case .text(let text): try Self.write(text, &output)
        case .blob(let blob): try Self.write(hex: blob, &output)
        }
    }

    /// Casts text with a NUL or CR from a blob: a NUL would end the text of a statement, and the
    /// shells drop a CR at the end of a line.
    private static func write(
        _ text: UnsafeBufferPointer<UInt8>, _ output: inout StandardOutput
    ) throws {
        guard !text.contains(where: { $0 == 0 || $0 == 0x0d }) else {
            output.buffer.append(contentsOf: "CAST(".utf8)
            try write(hex: UnsafeRawBufferPointer(text), &output)
            return output.buffer.append(contentsOf: " AS TEXT)".utf8)
        }
        output.buffer.append(0x27)
        try output.write(text: text) { $1.append(doubling: 0x27, in: $0) }
        output.buffer.append(0x27)
    }

    private static func write(
        hex bytes: UnsafeRawBufferPointer, _ output: inout StandardOutput
    ) throws {
        output.buffer.append(contentsOf: "X'".utf8)
        try output.write(blob: bytes) { $1.append(hex: $0) }
        output.buffer.append(0x27)
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
