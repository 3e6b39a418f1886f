import ArgumentParser
import Coffer
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Standard output, or a file instead: data only. A write that fails is an error, not a silent
/// loss.
///
/// Data is written unchanged, except to a terminal, which would interpret control characters.
struct StandardOutput {
    /// Bytes that are written together.
    private static let maximumByteCount = 1 << 16
    /// The longest row that is not written in parts.
    private static let maximumRowByteCount = 1 << 18
    /// The longest part of a value that is converted at once. A multiple of 3, so that the parts of
    /// base64 join.
    private static let pieceByteCount = 48 << 10

    /// Bytes that are not written yet. After each whole row `endRow()` must be called.
    var buffer: [UInt8] = []
    /// Bytes that were written.
    private(set) var writtenCount = 0
    private let descriptor: FileDescriptor
    private let name: String
    private let isTerminal: Bool

    init(_ descriptor: FileDescriptor = .standardOutput, name: String = "standard output") {
        self.descriptor = descriptor
        self.name = name
        isTerminal = isatty(descriptor.rawValue) != 0
    }

    /// - Parameter bytes: Must end with a whole character, because the buffer may be written after
    ///   it.
    mutating func write(_ bytes: some Sequence<UInt8>) throws {
        buffer.append(contentsOf: bytes)
        try endRow()
    }

    /// Appends UTF-8 in a converted form, piece by piece, so that a long text needs no second copy.
    ///
    /// - Parameter append: Appends a piece, which ends with a whole character.
    /// - Throws: `CancellationError` between the pieces of a long text; errors of writing.
    mutating func write(
        text: UnsafeBufferPointer<UInt8>,
        _ append: (UnsafeBufferPointer<UInt8>, inout [UInt8]) -> Void
    ) throws {
        var rest = text
        while rest.count > Self.pieceByteCount {
            var end = Self.pieceByteCount
            // The later bytes of a character begin with 10.
            while end > Self.pieceByteCount - 4, rest[end] & 0xc0 == 0x80 { end -= 1 }
            append(UnsafeBufferPointer(rebasing: rest[..<end]), &buffer)
            rest = UnsafeBufferPointer(rebasing: rest[end...])
            try Task.checkCancellation()
            try flushLongRow()
        }
        append(rest, &buffer)
        try flushLongRow()
    }

    /// Appends bytes in a converted form, piece by piece, as `write(text:_:)` does.
    ///
    /// - Parameter append: Appends a piece as ASCII.
    mutating func write(
        blob: UnsafeRawBufferPointer, _ append: (UnsafeRawBufferPointer, inout [UInt8]) -> Void
    ) throws {
        var rest = blob
        while rest.count > Self.pieceByteCount {
            append(UnsafeRawBufferPointer(rebasing: rest[..<Self.pieceByteCount]), &buffer)
            rest = UnsafeRawBufferPointer(rebasing: rest[Self.pieceByteCount...])
            try Task.checkCancellation()
            try flushLongRow()
        }
        append(rest, &buffer)
        try flushLongRow()
    }

    private mutating func flushLongRow() throws {
        if buffer.count >= Self.maximumRowByteCount { try flush() }
    }

    /// Writes the buffer if it is large enough.
    mutating func endRow() throws {
        if buffer.count >= Self.maximumByteCount { try flush() }
    }

    mutating func writeLine(_ text: String) throws {
        try write(text.utf8)
        try write(CollectionOfOne(10))
    }

    /// Must be called at the end, because it writes the rest of the buffer.
    mutating func flush() throws {
        if isTerminal {
            let text = String(decoding: buffer, as: UTF8.self)
            buffer = Array(VisibleText.of(text, keeping: ["\n", "\t"]).utf8)
        }
        do {
            try descriptor.writeAll(buffer)
        } catch {
            throw ToolError(.io, "\(name) cannot be written: \(error)")
        }
        writtenCount += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }
}

/// The result of a verb.
protocol Report: Encodable {
    /// Labels and values for people, one line each.
    var lines: [(label: String, value: String)] { get }
}

extension Int {
    /// The number with its unit, which has an s unless the number is 1.
    func counted(_ unit: String) -> String { "\(self) \(unit)\(self == 1 ? "" : "s")" }
}

/// Options for the output of a verb.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Write the result as one JSON object, and errors and warnings as another.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Progress on standard error: auto (a bar on a terminal), bar, json, none.",
            valueName: "style"))
    var progress = ProgressStyle.auto

    @Flag(name: .shortAndLong, help: "Write only data, warnings and errors.")
    var quiet = false

    /// Writes the report to standard output.
    func print(_ report: some Report) throws {
        var output = StandardOutput()
        if json {
            try output.writeLine(JSON.object(report))
        } else if !quiet {
            let lines = report.lines.map { (label: VisibleText.of($0.label), value: $0.value) }
            let width = (lines.map(\.label.count).max() ?? 0) + 2
            for line in lines {
                let label = line.label.isEmpty ? "" : line.label + ":"
                try output.writeLine(
                    label.padding(toLength: width, withPad: " ", startingAt: 0)
                        + VisibleText.of(line.value))
            }
        }
        try output.flush()
    }

    /// Writes the report of a change that is already durable. If it cannot be written, that is only
    /// a warning, because an exit code would say that nothing was done.
    func printDone(_ report: some Report) {
        do {
            try print(report)
        } catch {
            Terminal.warn("this was done, but its report is lost: \(Failure(error).message)")
        }
    }

    /// Writes a remark to standard error, unless only warnings are wanted. The JSON always has it.
    func note(_ message: String) {
        if json || !quiet { Terminal.note(message) }
    }

    func reporter(_ verb: String, unit: String) -> ProgressReporter {
        ProgressReporter(style: quiet ? .none : progress, verb: verb, unit: unit)
    }
}
