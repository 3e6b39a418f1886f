import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer

/// Several threads authenticate the pages of one file.
@Suite(.againstHanging, .onOwnThreads) struct PageSweepTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Makes a closed store.
    ///
    /// - Returns: The number of its pages.
    private func make(_ profile: CipherProfile, byteCount: Int) throws -> Int {
        let store = try Store(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: profile))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            for _ in 0..<byteCount / 100_000 {
                try tx.execute("INSERT INTO t VALUES (randomblob(100000))")
            }
        }
        try store.close()
        return try Damage.byteCount(path) / profile.pageByteCount
    }

    /// Calls `body` with the open file.
    private func withOpenFile<T>(_ body: (OpenFile) throws -> T) throws -> T {
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing(.delete))
        defer { connection.close() }
        return try body(connection.fileState())
    }

    private func failing(
        of numbers: some Sequence<Int>, _ threadCount: Int, _ open: OpenFile,
        _ told: (Int) throws(StoreError) -> Void = { _ in }
    ) throws -> [Int] {
        let sweep = PageSweep(
            open.handle, key: open.key, profile: open.profile, threadCountMax: threadCount)
        return try sweep.failing(of: numbers, told: told)
    }

    @Test(arguments: [1024, 4096, 65_536])
    func `each number of threads finds the same pages, and these alone`(
        pageByteCount: Int
    ) throws {
        var random = SeededGenerator(for: #function)
        let profile = try Engine.capabilities.defaultProfile.with(pageByteCount: pageByteCount)
        let pageCount = try make(profile, byteCount: 8_000_000)
        let damaged = Set((0..<9).map { _ in Int.random(in: 2...pageCount, using: &random) })
            .union([pageCount]).sorted()
        for page in damaged {
            let place = Int.random(in: 0..<pageByteCount - 80, using: &random)
            try Damage.flip(path, at: (page - 1) * pageByteCount + place)
        }
        try withOpenFile { open in
            for threadCount in [1, 2, 3, 8, 100] {
                // Beyond the end as well, where no page fails.
                let all = try failing(of: 1...pageCount + 70, threadCount, open)
                #expect(all == damaged, "\(threadCount) threads")
                let odd = stride(from: 1, through: pageCount, by: 2)
                #expect(
                    try failing(of: odd, threadCount, open) == damaged.filter { $0 % 2 == 1 })
                let one = [damaged[0]]
                #expect(try failing(of: one, threadCount, open) == one)
                #expect(try failing(of: EmptyCollection<Int>(), threadCount, open) == [])
            }
        }
    }

    @Test func `another salt in page 1 makes it fail`() throws {
        let profile = try Engine.capabilities.defaultProfile
        let pageCount = try make(profile, byteCount: 1_000_000)
        let found = try withOpenFile { open in
            // No MAC covers the salt, and the open file has its own.
            try Damage.overwriteFromOutside(path, at: 3)
            return try [1, 4].map { try failing(of: 1...pageCount, $0, open) }
        }
        #expect(found == [[1], [1]])
    }

    @Test func `progress counts each page once, and ends with all`() throws {
        let pageCount = try make(Engine.capabilities.defaultProfile, byteCount: 10_000_000)
        try withOpenFile { open in
            var told: [Int] = []
            _ = try failing(of: 1...pageCount, 4, open) { told.append($0) }
            #expect(told.count >= pageCount / 256 && told == told.sorted())
            #expect(told.last == pageCount)
        }
    }

    /// Runs the helpers of sweeps on threads of its own.
    private final class Helpers: Sendable {
        let begun = Mutex(0)
        let ended = Mutex(0)

        func run(_ work: @escaping @Sendable () -> Void) {
            begun.withLock { $0 += 1 }
            Thread.detachNewThread { [self] in
                work()
                ended.withLock { $0 += 1 }
            }
        }
    }

    @Test func `an error in the middle ends the sweep and its helpers`() throws {
        let pageCount = try make(Engine.capabilities.defaultProfile, byteCount: 10_000_000)
        let helpers = Helpers()
        try withOpenFile { open in
            for _ in 0..<20 {
                let sweep = PageSweep(
                    open.handle, key: open.key, profile: open.profile, threadCountMax: 4,
                    run: helpers.run)
                var count = 0
                do throws(StoreError) {
                    _ = try sweep.failing(of: 1...pageCount) { _ throws(StoreError) in
                        count += 1
                        if count == 3 { throw StoreError(.cancelled, "enough") }
                    }
                    Issue.record("it went on")
                } catch {
                    #expect(error.code == .cancelled && count == 3)
                }
            }
        }
        #expect(helpers.begun.withLock { $0 } == 60)
        try waitUntil { helpers.ended.withLock { $0 } == 60 }
    }

    @Test func `the findings of a slow helper count, and a late one does nothing`() throws {
        let profile = try Engine.capabilities.defaultProfile
        let pageCount = try make(profile, byteCount: 4_000_000)
        for page in 2...pageCount { try Damage.flip(path, at: page * profile.pageByteCount - 99) }
        try withOpenFile { open in
            for _ in 0..<20 {
                let helpers = Helpers()
                let late = Mutex<[@Sendable () -> Void]>([])
                let sweep = PageSweep(
                    open.handle, key: open.key, profile: open.profile, threadCountMax: 3
                ) { work in
                    // The second helper gets no thread before the end.
                    if helpers.begun.withLock({ $0 }) == 0 {
                        helpers.run(work)
                    } else {
                        late.withLock { $0.append(work) }
                    }
                }
                let found = try sweep.failing(of: 1...pageCount) { _ in }
                #expect(found == Array(2...pageCount))
                for work in late.withLock({ $0 }) { work() }
                try waitUntil { helpers.ended.withLock { $0 } == 1 }
            }
        }
    }
}
