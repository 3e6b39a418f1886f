import Dispatch
import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer

/// The check of the structure runs beside that of the pages.
@Suite(.againstHanging, .onOwnThreads) struct OverlappingVerificationTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Makes a store with an index whose function calls `look`, once for each row that is checked.
    private func make(
        readerCount: Int = 4, _ look: @escaping @Sendable () -> Void = {}
    ) throws -> Store {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = readerCount
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try store.prepareConnections { connection in
            try connection.register(
                function: "seen", argumentCount: 1, options: [.deterministic, .schema]
            ) { arguments in
                look()
                return try arguments.get(0)
            }
        }
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            try tx.execute("CREATE INDEX byFunction ON t(seen(v))")
            for number in 0..<40 {
                try tx.execute(
                    "INSERT INTO t VALUES (\(number), \([UInt8](repeating: 7, count: 9000)))")
            }
        }
        return store
    }

    private func verification(
        of store: Store, overlapByteCount: Int = 0, cancellation: Cancellation? = nil,
        progress: ((VerificationProgress) -> Void)? = nil
    ) -> Verification {
        var verification = Verification(
            core: store.core, scope: .everything, progress: progress, cancellation: cancellation)
        verification.threadCountMax = 2
        verification.overlapByteCount = overlapByteCount
        verification.endsStructureCheck = true
        return verification
    }

    @Test func `the structure is checked while the pages are`() throws {
        let isMeasured = Shared(false)
        let hasLooked = DispatchSemaphore(value: 0)
        let store = try make { if isMeasured.value { hasLooked.signal() } }
        isMeasured.value = true
        var isBeside = true
        let report = try verification(of: store) { _ in
            // Without the other thread it would never come.
            if hasLooked.wait(timeout: .now() + 600) == .timedOut { isBeside = false }
        }.run()
        #expect(report.isGood && report.isStructureChecked && isBeside)
    }

    @Test(arguments: [1, 2])
    func `a store with few connections keeps one for its readers`(readerCount: Int) throws {
        let isOver = Shared(false)
        let early = Shared(0)
        let isMeasured = Shared(false)
        let store = try make(readerCount: readerCount) {
            if isMeasured.value, !isOver.value { early.update { $0 += 1 } }
        }
        isMeasured.value = true
        var readCount = 0
        let report = try verification(of: store) { progress in
            if readerCount > 1 {
                let read = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    if (try? store.read { tx in try tx.firstRow("SELECT 1") }) != nil {
                        read.signal()
                    }
                }
                if read.wait(timeout: .now() + 600) == .success { readCount += 1 }
            }
            isOver.value = progress.pageCount == progress.pageCountTotal
        }.run()
        #expect(report.isGood && report.isStructureChecked && early.value == 0)
        #expect(readCount > 0 || readerCount == 1)
    }

    @Test func `with snapshots that leave one connection, it waits for the pages`() throws {
        let store = try make()
        let snapshots = try (0..<2).map { _ in try store.snapshot() }
        let isOver = Shared(false)
        let early = Shared(0)
        var verification = verification(of: store) { progress in
            isOver.value = progress.pageCount == progress.pageCountTotal
        }
        verification.checkStructure = { [core = store.core] cancellation in
            if !isOver.value { early.update { $0 += 1 } }
            return StructureCheck(core: core).run(cancellation)
        }
        #expect(try verification.run().isStructureChecked && early.value == 0)
        for snapshot in snapshots { try snapshot.close() }
    }

    @Test func `a check that got no connection beside the pages is made after them`() throws {
        let store = try make()
        let hasBegun = DispatchSemaphore(value: 0)
        let runCount = Shared(0)
        var verification = verification(of: store) { _ in
            hasBegun.wait()
            hasBegun.signal()
        }
        verification.checkStructure = { [core = store.core] cancellation in
            runCount.update { $0 += 1 }
            hasBegun.signal()
            guard runCount.value > 1 else {
                return [.failure(StoreError(.busy, "no connection became free"))]
            }
            return StructureCheck(core: core).run(cancellation)
        }
        let report = try verification.run()
        #expect(report.isGood && report.isStructureChecked && runCount.value == 2)
    }

    @Test func `an engine that does not end its check makes it after the pages`() throws {
        let store = try make()
        let hasBegun = DispatchSemaphore(value: 0)
        var isEarly = false
        var verification = verification(of: store) { _ in
            // Another thread would have begun by then.
            if hasBegun.wait(timeout: .now() + 0.5) == .success { isEarly = true }
        }
        verification.endsStructureCheck = false
        verification.checkStructure = { [core = store.core] cancellation in
            hasBegun.signal()
            return StructureCheck(core: core).run(cancellation)
        }
        #expect(try verification.run().isStructureChecked && !isEarly)
    }

    @Test(arguments: 0..<12)
    func `both at once find the same as one after the other`(number: Int) throws {
        var random = SeededGenerator(for: "findings \(number)")
        try make().close()
        let pageByteCount = try Engine.capabilities.defaultProfile.pageByteCount
        let pageCount = try Damage.byteCount(path) / pageByteCount
        for page in (2...pageCount).shuffled(using: &random).prefix(number % 3) {
            try Damage.flip(path, at: (page - 1) * pageByteCount + 99)
        }
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 3
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        // In half of the runs SQLite cannot check the index, because the function is missing.
        if number % 2 == 0 {
            try store.prepareConnections { connection in
                try connection.register(
                    function: "seen", argumentCount: 1, options: [.deterministic, .schema]
                ) { try $0.get(0) }
            }
        }
        let after = try verification(of: store, overlapByteCount: .max).run()
        #expect(after.isGood == (number % 3 == 0))
        let isInability = number % 2 == 1 && number % 3 == 0
        #expect((after.structureFailure != nil) == isInability)
        for _ in 0..<3 {
            let beside = try verification(of: store).run()
            // How SQLite words what it finds behind a damaged page depends on what it has read.
            #expect(beside.damagedPages == after.damagedPages)
            #expect(beside.isStructureChecked == after.isStructureChecked)
            #expect(beside.structureFailure == after.structureFailure)
            #expect(beside.problems.isEmpty == after.problems.isEmpty)
        }
        try store.close()
    }

    @Test func `a cancellation ends the check of the structure`() throws {
        let cancellation = Cancellation()
        let isMeasured = Shared(false)
        let store = try make {
            // The pages are few: by now the run waits for this check, or will.
            if isMeasured.value { cancellation.cancel() }
        }
        isMeasured.value = true
        #expect {
            _ = try verification(of: store, cancellation: cancellation).run()
        } throws: { ($0 as? StoreError)?.code == .cancelled }
        try store.close()
    }

    @Test func `an error of the pages ends the check of the structure, and waits for its end`()
        throws
    {
        let cancellation = Cancellation()
        let (isMeasured, lookCount) = (Shared(false), Shared(0))
        let hasLooked = DispatchSemaphore(value: 0)
        let goesOn = DispatchSemaphore(value: 0)
        let store = try make {
            guard isMeasured.value else { return }
            lookCount.update { $0 += 1 }
            if lookCount.value == 1 {
                hasLooked.signal()
                goesOn.wait()
            } else {
                // All rows take longer than the cancellation.
                usleep(20_000)
            }
        }
        isMeasured.value = true
        #expect {
            _ = try verification(of: store, cancellation: cancellation) { _ in
                hasLooked.wait()
                cancellation.cancel()
                goesOn.signal()
            }.run()
        } throws: { ($0 as? StoreError)?.code == .cancelled }
        // The check stopped soon after its first row, and holds no connection.
        #expect(lookCount.value < 40)
        let statistics = store.statistics
        #expect(statistics.openReaderCount == statistics.idleReaderCount)
        try store.close()
    }
}
