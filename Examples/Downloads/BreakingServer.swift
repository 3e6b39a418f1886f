import Foundation
import Synchronization

/// A server on this machine that breaks connections in the middle, answers 503 and 404, changes a
/// file, and ignores ranges.
///
/// The seed determines how it treats request number *n* for a file.
final class BreakingServer: Sendable {
    /// A habit besides breaking connections.
    enum Habit {
        case none, ignoresRanges, changesOnce, unavailableTwice, missing
    }

    struct Counts {
        var requests = 0
        var bytesSent = 0
        var broken = 0
        /// Answers that begin at a breakpoint.
        var resumed = 0
        /// Answers that begin again, although a breakpoint was asked for.
        var restarted = 0
        var refused = 0
    }

    private struct State {
        var counts = Counts()
        var requestCounts: [Int: Int] = [:]
        var isChanged = false
        var isRepaired = false
        /// The number of bytes that it may still send.
        var allowance = Int.max
        var contents: [String: [UInt8]] = [:]
    }

    let fileCount: Int
    private let seed: UInt64
    private let port: UInt16
    private let state = Mutex(State())

    init(fileCount: Int, seed: UInt64) throws {
        // A caller that hangs up is an error of the call, and does not end the program.
        signal(SIGPIPE, SIG_IGN)
        let (listener, port) = try Socket.listening()
        (self.fileCount, self.seed, self.port) = (fileCount, seed, port)
        Thread.detachNewThread { [self] in
            while let caller = listener.accept() {
                Thread.detachNewThread { self.serve(caller) }
            }
        }
    }

    var counts: Counts { state.withLock { $0.counts } }

    /// Sends about as many bytes as given, then none, and keeps the connections open.
    func hold(after byteCount: Int) { state.withLock { $0.allowance = byteCount } }

    /// Whether it has sent the bytes before a hold.
    var isHeld: Bool { state.withLock { $0.allowance <= 0 } }

    func release() { state.withLock { $0.allowance = .max } }

    /// The missing files are there from now on.
    func repair() { state.withLock { $0.isRepaired = true } }

    // MARK: Files

    var address: String { "http://127.0.0.1:\(port)" }

    func url(_ index: Int) -> URL { URL(string: "\(address)/files/\(index).bin")! }

    func page(_ index: Int) -> URL { URL(string: "\(address)/pages/\(index).html")! }

    func habit(_ index: Int) -> Habit {
        switch index {
        case 1: .ignoresRanges
        case 2: .changesOnce
        case 3: .unavailableTwice
        case 4, 5: .missing
        default: .none
        }
    }

    /// The bytes of a file as it is now, or of the version with this tag.
    func content(_ index: Int, _ tag: String? = nil) -> [UInt8] {
        let tag = tag ?? self.tag(index)
        if let known = state.withLock({ $0.contents[tag] }) { return known }
        var random = SplitMix(seed &+ UInt64(index))
        let count = Int(random.next() % 300_000) + 150_000
        if tag.hasSuffix("-2\"") { random = SplitMix(random.next()) }
        let content = [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            for position in 0..<count {
                buffer.initializeElement(at: position, to: UInt8(truncatingIfNeeded: random.next()))
            }
            initializedCount = count
        }
        state.withLock { $0.contents[tag] = content }
        return content
    }

    func pageText(_ index: Int) -> [UInt8] {
        Array("<h1>Manual \(index)</h1>How to use file \(index) of \(fileCount).".utf8)
    }

    private func tag(_ index: Int) -> String {
        let isChanged = habit(index) == .changesOnce && state.withLock { $0.isChanged }
        return "\"\(seed)-\(index)-\(isChanged ? 2 : 1)\""
    }

    // MARK: Answers

    private func serve(_ caller: Socket) {
        guard let lines = caller.readHead(), let request = Request(lines),
            (0..<fileCount).contains(request.index)
        else { return }
        state.withLock { $0.counts.requests += 1 }
        if request.isPage {
            let text = pageText(request.index)
            _ = caller.write(Self.head("200 OK", text.count, []) + text)
            return
        }
        let index = request.index
        let number = state.withLock { state in
            state.requestCounts[index, default: 0] += 1
            return state.requestCounts[index]!
        }
        if let refusal = refusal(index, number) {
            state.withLock { $0.counts.refused += 1 }
            _ = caller.write(Self.head(refusal, 0, []))
            return
        }
        send(request, number, to: caller)
    }

    private func refusal(_ index: Int, _ number: Int) -> String? {
        switch habit(index) {
        case .unavailableTwice where number <= 2: "503 Service Unavailable"
        case .missing where !state.withLock({ $0.isRepaired }): "404 Not Found"
        default: nil
        }
    }

    private func send(_ request: Request, _ number: Int, to caller: Socket) {
        let (index, habit) = (request.index, habit(request.index))
        // The caller has a part of the old version.
        if habit == .changesOnce, request.start > 0 { state.withLock { $0.isChanged = true } }
        let tag = tag(index)
        let content = content(index, tag)
        let isResumed =
            request.start > 0 && request.start < content.count && request.tag == tag
            && habit != .ignoresRanges
        let start = isResumed ? request.start : 0
        state.withLock { state in
            state.counts.resumed += isResumed ? 1 : 0
            state.counts.restarted += request.start > 0 && !isResumed ? 1 : 0
        }
        var fields = ["ETag: \(tag)"]
        if habit != .ignoresRanges { fields.append("Accept-Ranges: bytes") }
        if isResumed {
            fields.append("Content-Range: bytes \(start)-\(content.count - 1)/\(content.count)")
        }
        let status = isResumed ? "206 Partial Content" : "200 OK"
        guard caller.write(Self.head(status, content.count - start, fields)) else { return }

        let mustBreak = habit == .changesOnce && !state.withLock { $0.isChanged }
        let breaking = breakPoint(index, number, start..<content.count, mustBreak)
        var position = start
        while position < content.count {
            let end = min(position + 16_384, breaking?.position ?? .max, content.count)
            guard caller.write(Array(content[position..<end])) else { return }
            state.withLock { state in
                state.counts.bytesSent += end - position
                state.allowance -= end - position
            }
            position = end
            if let breaking, position == breaking.position {
                state.withLock { $0.counts.broken += 1 }
                if breaking.isReset { caller.reset() }
                return
            }
            // The pace of the network.
            repeat { usleep(15_000) } while isHeld
        }
    }

    /// Where a connection breaks. The first four of a file break more often than not.
    private func breakPoint(
        _ index: Int, _ number: Int, _ range: Range<Int>, _ mustBreak: Bool
    ) -> (position: Int, isReset: Bool)? {
        var random = SplitMix(seed &+ UInt64(index) << 32 &+ UInt64(number))
        let doesBreak = random.next() % 5 < 3 && number <= 4
        let position = range.lowerBound + Int(random.next() % UInt64(range.count))
        let isReset = random.next() % 2 == 0
        if mustBreak { return (range.lowerBound + range.count / 2, false) }
        return doesBreak && position > range.lowerBound ? (position, isReset) : nil
    }

    private static func head(_ status: String, _ length: Int, _ fields: [String]) -> [UInt8] {
        let lines =
            ["HTTP/1.1 \(status)", "Content-Length: \(length)", "Connection: close"] + fields
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}

/// A request as the server needs it.
private struct Request {
    let isPage: Bool
    let index: Int
    /// The first byte that is asked for.
    let start: Int
    /// The version that the caller has a part of.
    let tag: String?

    init?(_ lines: [String]) {
        let words = lines[0].split(separator: " ")
        guard words.count == 3, words[0] == "GET" else { return nil }
        let parts = words[1].split { "/.".contains($0) }
        guard parts.count == 3, let index = Int(parts[1]) else { return nil }
        (isPage, self.index) = (parts[0] == "pages", index)
        func field(_ name: String) -> String? {
            lines.first { $0.lowercased().hasPrefix(name + ":") }
                .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
        }
        tag = field("if-range")
        let range = field("range")?.split { "=-".contains($0) }
        start = range?.count == 2 ? Int(range![1]) ?? 0 : 0
    }
}

/// Random numbers that a seed determines.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
