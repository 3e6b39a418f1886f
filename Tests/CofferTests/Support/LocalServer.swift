import Foundation
import Testing

/// A program that serves at a port of this machine until the value is gone.
final class LocalServer {
    private let process = Process()

    /// The stream on which the program says where it serves.
    enum Stream {
        case output, error
    }

    /// The part of the program's words that names the place where it serves.
    let place: String

    /// - Parameter announcement: Matches the words; its first group is the place.
    init(
        _ program: String, _ arguments: [String], on stream: Stream,
        _ announcement: Regex<(Substring, Substring)>
    ) throws {
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let output = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        switch stream {
        case .output: process.standardOutput = output
        case .error: process.standardError = output
        }
        try process.run()
        var text = ""
        while true {
            if let match = text.firstMatch(of: announcement) {
                place = String(match.1)
                return
            }
            let bytes = output.fileHandleForReading.availableData
            try #require(!bytes.isEmpty, "\(program) serves nothing: \(text)")
            text += String(decoding: bytes, as: UTF8.self)
        }
    }

    deinit {
        process.terminate()
    }
}
