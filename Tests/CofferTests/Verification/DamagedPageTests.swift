import Foundation
import Testing

@testable import Coffer

/// What `verify` says of damaged pages, on the engine's files and on one that Python's SQLite
/// wrote.
@Suite(.againstHanging, .onOwnThreads) struct DamagedPageTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Flips one bit in each of these pages of a copy, and verifies it.
    private func verify(
        damaging pages: [Int], _ mode: Configuration.JournalMode, _ profile: CipherProfile,
        key: [UInt8] = [UInt8](repeating: 1, count: 32), _ scope: VerificationScope = .everything
    ) throws -> VerificationReport {
        let copy = try folder.copy(path, as: "\(UUID()).db")
        for page in pages {
            try Damage.flip(copy, at: page * profile.pageByteCount - 300)
        }
        let store = try Store(
            path: copy, key: .raw(key), configuration: .testing(mode, profile: profile))
        let report = try store.verify(scope)
        try store.close()
        return report
    }

    // MARK: Compared with what others know

    @Test func `each damaged page of Python's store is named as its SQLite names it`() throws {
        let vectors = try #require(OwnerVectors.shared)
        try FileManager.default.copyItem(at: OwnerVectors.url, to: URL(filePath: path))
        let profile = try KeyVectors.profile(named: vectors.profile)
        for (index, page) in vectors.pages.enumerated() {
            // Without the schema nothing opens.
            if page.content == "the schema" { continue }
            let number = index + 1
            let key = try KeyVectors.bytes(hex: vectors.key)
            let report = try verify(damaging: [number], .delete, profile, key: key)
            let text = "page \(number): \(page.contentIfDamaged)"
            #expect(report.damagedPages.map(\.description) == [text])
            #expect(!report.isGood)
        }
    }

    /// The owner of each page, known from how the file grew.
    private func makeParts(
        _ mode: Configuration.JournalMode, _ profile: CipherProfile
    ) throws -> [(pages: Range<Int>, owner: String)] {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
        let handle = try connection.current()
        var parts: [(pages: Range<Int>, owner: String)] = []
        func part(_ owner: String, _ statements: [SQL]) throws {
            let start = try handle.firstInteger("PRAGMA page_count") + 1
            try connection.transaction {
                for statement in statements { try connection.execute(statement) }
            }
            parts.append((start..<(try handle.firstInteger("PRAGMA page_count") + 1), owner))
        }
        let numbers: SQL = """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)
            SELECT i, randomblob(150) FROM n
            """
        let overflow = [UInt8](repeating: 7, count: 20 * profile.pageByteCount)
        try part("table note", ["CREATE TABLE note(id INTEGER PRIMARY KEY, v)"])
        try part("table note", ["INSERT INTO note \(numbers)"])
        try part("index note_v of table note", ["CREATE INDEX note_v ON note(v)"])
        try part(
            "table pair",
            ["CREATE TABLE pair(k, v, PRIMARY KEY (v, k)) WITHOUT ROWID"])
        try part("table pair", ["INSERT INTO pair \(numbers)"])
        try part("table gone", ["CREATE TABLE gone(k, v)", "INSERT INTO gone \(numbers)"])
        try part("table file", ["CREATE TABLE file(v)", "INSERT INTO file VALUES (\(overflow))"])
        try connection.execute("DROP TABLE gone")
        connection.close()
        return parts.map { ($0.pages, $0.owner == "table gone" ? "free" : $0.owner) }
    }

    @Test(arguments: journalModes, supportedProfiles)
    func `damaged pages are named by what made the file grow`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        for (pages, owner) in try makeParts(mode, profile) {
            let places = [pages.lowerBound, (pages.lowerBound + pages.upperBound) / 2]
            let chosen = isLongRun ? Array(pages) : Set(places + [pages.upperBound - 1]).sorted()
            for number in chosen {
                let report = try verify(damaging: [number], mode, profile)
                let page = try #require(report.damagedPages.first)
                #expect(report.damagedPages.count == 1 && page.number == number)
                #expect(OwnerVectors.Page.owner(page.content.description) == owner, "\(page)")
                // The root of `file` is followed by the pages of its only value.
                if owner == "table file", number > pages.lowerBound {
                    #expect(page.content == .table("file", .overflow), "\(page)")
                }
            }
        }
    }

    @Test func `every page but the first may be damaged at once`() throws {
        let profile = try Engine.capabilities.defaultProfile
        let parts = try makeParts(.delete, profile)
        let last = try #require(parts.last?.pages.upperBound) - 1
        let report = try verify(damaging: Array(2...last), .delete, profile)
        #expect(report.damagedPages.map(\.number) == Array(2...last))
        // The roots and the first page of the free list are named on page 1.
        let known = report.damagedPages.filter { $0.content != .unknown }
        #expect(
            Set(known.map(\.content)) == [
                .table("note", .node), .index("note_v", table: "note", .node),
                .table("pair", .node), .table("file", .node), .free,
            ])
        #expect(known.count == 5)
    }

    /// Settings that only a new file takes, and that `Connection` does not have.
    private func makeForeign(encoding: String, _ profile: CipherProfile) throws {
        let raw = try RawConnection(
            path, key: 1,
            pragmas: [
                "PRAGMA cipher_page_size = \(profile.pageByteCount)",
                "PRAGMA encoding = '\(encoding)'", "PRAGMA auto_vacuum = FULL",
            ])
        try #require(raw.run("CREATE TABLE \"größe 𝄞\"(v)") == 0)
        try #require(raw.run("CREATE INDEX 長 ON \"größe 𝄞\"(v)") == 0)
        try #require(raw.first("PRAGMA encoding") == encoding)
    }

    @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func `names in every encoding and pointer maps are read`(encoding: String) throws {
        let profile = try Engine.capabilities.defaultProfile
        try makeForeign(encoding: encoding, profile)
        let report = try verify(damaging: [2, 3, 4], .delete, profile)
        #expect(
            report.damagedPages.map(\.content) == [
                .pointerMap, .table("größe 𝄞", .node), .index("長", table: "größe 𝄞", .node),
            ])
    }

    // MARK: The WAL

    /// A store whose WAL gives the pages of a dropped table to another one.
    private func makeWithWAL() throws -> (store: Store, pages: Range<Int>) {
        func insert(_ table: String) -> SQL {
            """
            INSERT INTO \(identifier: table)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100)
            SELECT randomblob(900) FROM n
            """
        }
        let first = try Store(path: path, key: .numbered(1), configuration: .testing())
        try first.write { tx in
            try tx.execute("CREATE TABLE before(v)")
            try tx.execute(insert("before"))
        }
        try first.close()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.write { tx in
            try tx.execute("DROP TABLE before")
            try tx.execute("CREATE TABLE later(v)")
            try tx.execute(insert("later"))
        }
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        return (store, 2..<(try Damage.byteCount(path) / size + 1))
    }

    @Test func `a page that is in the WAL too is named by the WAL's content`() throws {
        let (store, pages) = try makeWithWAL()
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        // After a checkpoint reads use the pages of the main file.
        try store.core.pool.writer.checkpoint(.passive)
        for number in pages { try Damage.overwriteFromOutside(path, at: number * size - 300) }
        let report = try store.verify()
        #expect(report.damagedPages.map(\.number) == Array(pages))
        let contents = Set(report.damagedPages.map(\.content))
        #expect(
            contents.isSubset(of: [.table("later", .leaf), .table("later", .interior), .free]))
        #expect(contents.contains(.table("later", .leaf)))
        #expect(report.damagedFramePages.isEmpty && !report.isCheckpointOwed)
        expect(.damaged) { try store.read { tx in try tx.rows("SELECT * FROM later").count } }
    }

    @Test func `a damaged frame is named by what its page holds`() throws {
        let (store, pages) = try makeWithWAL()
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        let frameByteCount = size + WriteAheadLog.frameHeaderByteCount
        let frameCount = (try Damage.byteCount(path + "-wal") - 32) / frameByteCount
        try Damage.overwriteFromOutside(
            path + "-wal", at: 32 + frameByteCount * frameCount - 300)
        let report = try store.verify()
        let damaged = try #require(report.damagedFramePages.first)
        #expect(report.damagedFramePages.count == 1 && report.damagedPages.isEmpty)
        #expect(pages.contains(damaged.number))
        #expect(damaged.content == .table("later", .leaf), "\(damaged)")
        #expect(!report.isGood)
    }

    // MARK: Samples

    @Test(arguments: journalModes)
    func `a sample reports how much of the file it checked`(
        mode: Configuration.JournalMode
    ) async throws {
        let profile = try Engine.capabilities.defaultProfile
        let parts = try makeParts(mode, profile)
        let total = try #require(parts.last?.pages.upperBound) - 1
        let store = try await Store(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try await store.write { tx in try tx.execute("INSERT INTO note(v) VALUES ('logged')") }
        let report = try await store.verify(.sample(maximumPageCount: 10))
        #expect(report.isGood && !report.isStructureChecked)
        #expect(report.pageCount == 10 && report.pageCountTotal == total)
        #expect((report.frameCount > 0) == (mode == .wal))
        let half = try await store.verify(.sample(fraction: 0.5))
        #expect(half.pageCount == (total + 1) / 2 && half.pageCountTotal == total)
        let whole = try await store.verify()
        #expect(whole.pageCount == total && whole.pageCountTotal == total)
        #expect(whole.isStructureChecked && whole.isGood)
        for scope in [VerificationScope.sample(maximumPageCount: 0), .sample(fraction: 2)] {
            await #expect {
                _ = try await store.verify(scope)
            } throws: { ($0 as? StoreError)?.code == .misuse }
        }
    }

    @Test func `samples find a damaged page sooner or later and name it`() throws {
        let profile = try Engine.capabilities.defaultProfile
        let parts = try makeParts(.delete, profile)
        let damaged = try #require(parts.last?.pages.lowerBound)
        // Never found in 60 runs: one chance in 2^60.
        for _ in 0..<60 {
            let report = try verify(
                damaging: [damaged], .delete, profile, .sample(fraction: 0.5))
            #expect(report.isGood == report.damagedPages.isEmpty)
            if let page = report.damagedPages.first {
                #expect(page.number == damaged && page.content == .table("file", .node))
                return
            }
        }
        Issue.record("never drawn")
    }
}
