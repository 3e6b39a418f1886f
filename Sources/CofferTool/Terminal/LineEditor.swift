import CTool
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Reads what a person types, line by line.
///
/// With libedit lines can be edited, and there is a history in memory. Without it there is what the
/// terminal itself offers.
final class LineEditor {
    enum Answer {
        case line(String)
        /// A line with bytes that are not UTF-8, or with a NUL. No text is the same.
        case unreadable
        case end
        case interrupted
    }

    /// A byte for it ends `ask` without a line.
    let interruption: FileDescriptor
    private let interruptions: FileDescriptor
    private let editor: OpaquePointer?

    init() throws {
        (interruptions, interruption) = try FileDescriptor.pipe()
        _ = fcntl(interruptions.rawValue, F_SETFL, O_NONBLOCK)
        editor = coffer_line_editor_open(interruptions.rawValue)
    }

    deinit {
        if let editor { coffer_line_editor_close(editor) }
        try? interruption.close()
        try? interruptions.close()
    }

    /// Reads one line.
    func ask(_ prompt: String) throws -> Answer {
        // A Ctrl-C from before is over.
        while (try? Self.byte(of: interruptions)) != nil {}
        guard let editor else { return try askTerminal(prompt) }
        var line: UnsafeMutablePointer<CChar>?
        defer { free(line) }
        switch coffer_line_editor_read(editor, prompt, &line) {
        case 1: return .line(line.map { String(cString: $0) } ?? "")
        case 2: return .unreadable
        case 0: return .end
        default: return .interrupted
        }
    }

    /// Adds a text to the history.
    func remember(_ text: String) {
        if let editor { coffer_line_editor_remember(editor, text) }
    }

    private func askTerminal(_ prompt: String) throws -> Answer {
        Terminal.writeRaw(prompt)
        var bytes: [UInt8] = []
        var places = [
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
            pollfd(fd: interruptions.rawValue, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            guard poll(&places, 2, -1) > 0 else { continue }
            if places[1].revents != 0 { return .interrupted }
            guard let byte = try Self.byte(of: .standardInput) else {
                return bytes.isEmpty ? .end : answer(bytes)
            }
            guard byte != 10 else { return answer(bytes) }
            bytes.append(byte)
        }
    }

    private func answer(_ bytes: [UInt8]) -> Answer {
        guard !bytes.contains(0), let line = String(validating: bytes, as: UTF8.self) else {
            return .unreadable
        }
        return .line(line)
    }

    /// - Returns: `nil` at the end.
    private static func byte(of file: FileDescriptor) throws -> UInt8? {
        try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { room in
            try file.read(into: UnsafeMutableRawBufferPointer(room)) == 1 ? room[0] : nil
        }
    }
}
