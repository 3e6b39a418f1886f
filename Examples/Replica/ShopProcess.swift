import CofferReplica
import Foundation

/// Where the replica is: a folder, or the URL of a bucket and a file with its access key.
struct Place {
    let words: [String]

    init(words: [String]) { self.words = words }

    /// The place that the user has named, or a folder in this one.
    init(_ folder: URL) {
        let named = Array(CommandLine.arguments.dropFirst())
        words = named.isEmpty ? [folder.appending(path: "remote").path] : named
    }

    func remote() throws -> any Remote {
        guard words.count == 2 else { return try FolderRemote(words[0]) }
        return try S3Remote(words[0], credentials: .file(words[1]))
    }
}

/// A line of the shop's output: which orders the remote has, and the position of that commit.
struct Told {
    /// The last order.
    let count: Int
    /// The last order that was deleted by mistake; 0 before that.
    let deletedCount: Int
    let position: ReplicaPosition

    init?(_ line: Substring) {
        let words = line.split(separator: " ")
        guard words.count == 3, let count = Int(words[0]), let deletedCount = Int(words[1]),
            let position = ReplicaPosition(String(words[2]))
        else { return nil }
        (self.count, self.deletedCount, self.position) = (count, deletedCount, position)
    }
}

/// A shop in a process of its own.
final class ShopProcess {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()
    private var text = ""

    init(_ path: String, _ place: Place) throws {
        process.executableURL = Bundle.main.executableURL
        process.arguments = ["shop", path] + place.words
        process.standardOutput = output
        process.standardInput = input
        try process.run()
    }

    /// Waits until the shop has told what is asked for.
    ///
    /// - Throws: If it ends before.
    func wait(for isEnough: (Told) -> Bool) throws -> Told {
        while true {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let told = lines.dropLast().compactMap { Told($0) }
            if let last = told.last, isEnough(last) { return last }
            let new = output.fileHandleForReading.availableData
            guard !new.isEmpty else { throw CocoaError(.fileReadUnknown) }
            text += String(decoding: new, as: UTF8.self)
        }
    }

    func deleteAll() throws {
        try input.fileHandleForWriting.write(contentsOf: Data("delete\n".utf8))
    }

    /// Ends it as `kill -9` does.
    ///
    /// - Returns: Whether the signal ended it.
    func kill() -> Bool {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        return process.terminationReason == .uncaughtSignal
    }
}
