import Testing

@testable import Coffer

/// Two compactions of one store at once, of two processes and of two tasks: one of them is done,
/// the other comes after it or is refused, and every row stays.
@Suite(.againstHanging, .onOwnThreads) struct TwoCompactionsTests {
    private static func make(_ mode: Configuration.JournalMode) throws -> SparseStore {
        try SparseStore(mode, rowCount: 300, rowByteCount: 3000)
    }

    @Test(arguments: journalModes)
    func `while another process compacts, compacting is .busy, and neither disturbs the other`(
        mode: Configuration.JournalMode
    ) throws {
        let original = try Self.make(mode)
        let folder = try original.copy()
        var configuration = Configuration.impatient(mode)
        configuration.busyTimeout = .milliseconds(10)
        let store = try Store(
            path: folder.path(), key: .numbered(1), mode: .mustExist, configuration: configuration)
        let peer = try Peer(["compact-stepwise", mode.description, folder.path(), "1"])
        var reports: [String] = []
        var lines: [String] = []
        while let line = peer.line() {
            lines.append(line)
            if line == "compacted" { break }
            let parts = line.split(separator: " ")
            // The last page commits, and gives the lock back.
            if parts.count == 3, parts[0] != "replacingPages" || parts[1] != parts[2] {
                reports.append(line)
                expect(.busy) { try store.compact() }
            }
            peer.goOn()
        }
        #expect(lines.last == "compacted" && reports.count > 2, "\(lines)")
        try store.compact()
        try store.close()
        #expect(original.problems(folder, isDone: true) == [])
    }

    @Test(arguments: journalModes)
    func `of two processes that begin at once, one compacts, and the other too or is .busy`(
        mode: Configuration.JournalMode
    ) throws {
        let original = try Self.make(mode)
        for _ in 0..<tryCount(2, long: 100) {
            let folder = try original.copy()
            let peers = try (0..<2).map { _ in
                try Peer(["compact", mode.description, folder.path(), "1"])
            }
            for peer in peers { try #require(peer.line() == "ready") }
            for peer in peers { peer.goOn() }
            let said = peers.map { $0.finish() }
            #expect(said.allSatisfy { [["compacted"], ["busy"]].contains($0) }, "\(said)")
            #expect(said.contains(["compacted"]), "\(said)")
            #expect(original.problems(folder, isDone: true) == [])
        }
    }

    @Test(arguments: journalModes)
    func `two tasks compact one after the other`(mode: Configuration.JournalMode) async throws {
        let original = try Self.make(mode)
        let folder = try original.copy()
        let store = try await Store(
            path: folder.path(), key: .numbered(1), mode: .mustExist,
            configuration: .testing(mode))
        async let first = store.compact()
        async let second = store.compact()
        let reports = try await [first, second]
        #expect(reports.map(\.isShortened) == [true, true])
        #expect(Set(reports.map(\.byteCount)).count == 1)
        #expect(reports[0].content == reports[1].content)
        try await store.close()
        #expect(original.problems(folder, isDone: true) == [])
    }
}
