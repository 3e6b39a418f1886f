import Foundation

/// A worker: this program, started once more, which books payments by order of the server.
///
/// The key, the time and orders come as lines of standard input, and each order has a line as its
/// answer. Other users of the machine can see the arguments of a process, but not its pipes.
enum Worker {
    private struct UnknownOrder: Error {}

    /// The path of the queue, if this process is a worker.
    static var path: String? {
        let arguments = CommandLine.arguments
        return arguments.count == 3 && arguments[1] == "worker" ? arguments[2] : nil
    }

    static func run(_ path: String) throws {
        guard let digits = readLine() else { return }
        let clock = HandClock()
        let queue = try JobQueue(path: path, key: .raw(hex: digits), clock: clock)
        var held: JobQueue.Claim?
        while let line = readLine() {
            let words = line.split(separator: " ")
            switch (words.first, words.last.flatMap { Int($0) }) {
            case ("time", let seconds?):
                clock.set(to: Date(timeIntervalSince1970: Double(seconds)))
            case ("work", let maximumCount?):
                var count = 0
                while count < maximumCount, let claim = try queue.claim() {
                    count += try queue.finish(claim) ? 1 : 0
                }
                try answer("\(count)")
            case ("hold", _):
                held = try queue.claim()
                try answer(held.map { "\($0.number)" } ?? "nothing")
            case ("finish", _):
                try answer(held.map(queue.finish) == true ? "booked" : "refused")
            default:
                throw UnknownOrder()
            }
        }
        try queue.close()
    }

    private static func answer(_ line: String) throws {
        try FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
    }
}

/// A worker as the server sees it.
///
/// `Process` starts a program, which opens the store by itself. Never `fork` with an open store and
/// use it in the child: that may corrupt the file
/// (https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_).
struct WorkerProcess {
    private struct Ended: Error {}

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(path: String, digits: String) throws {
        process.executableURL = Bundle.main.executableURL
        process.arguments = ["worker", path]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        try send(digits)
    }

    func send(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    /// Waits for the answer to an order.
    func answer() throws -> String {
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { throw Ended() }
            line += more
        }
        return String(decoding: line.dropLast(), as: UTF8.self)
    }

    func ask(_ order: String) throws -> String {
        try send(order)
        return try answer()
    }

    /// Ends the worker as `kill -9` does: it cannot clean up.
    ///
    /// - Returns: Whether the signal ended it.
    func kill() -> Bool {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        return process.terminationReason == .uncaughtSignal
    }

    /// Lets the worker close its store, and end.
    func end() throws -> Bool {
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
