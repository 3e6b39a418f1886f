import CSQLCipher
import Workload

@testable import Coffer

/// Writes to a store whose disk fails again and again, and checks the content after each fault: it
/// must be what was acknowledged and nothing else.
final class FaultHarness {
    /// What is wrong with the store or the disk, so that the harness has something to find.
    enum Defect {
        case none
        /// A client takes an error for success.
        case acknowledgesFailures
        /// The disk reports a write that it has not done.
        case diskLies
    }

    private struct Fault: CustomStringConvertible {
        let kinds: FaultDisk.Kinds
        let skip: Int
        let count: Int?
        let action: FaultDisk.Action
        let code: Int32
        /// Strikes while the store is opened, not while it is used.
        let isWhileOpening: Bool
        let isConcurrent: Bool

        var description: String {
            "kinds \(kinds.rawValue) after \(skip), \(count.map { "\($0)" } ?? "all"), \(action) "
                + "\(code), \(isWhileOpening ? "opening" : isConcurrent ? "tasks" : "thread")"
        }
    }

    private let keeping: Keeping
    private let defect: Defect
    private let folder: TemporaryFolder
    private let disk: FaultDisk
    private let path: String
    private var random: SeededGenerator
    private var store: Store?
    private var lastNumber = 0
    private var acknowledged: Set<Ledger.Entry> = []
    private var problems: [String] = []
    /// The number of failed writes and openings: what the faults really disturbed.
    private(set) var failureCount = 0

    init(_ keeping: Keeping, seed: UInt64, _ defect: Defect = .none) throws {
        self.keeping = keeping
        self.defect = defect
        random = SeededGenerator(seed: seed)
        folder = try TemporaryFolder()
        path = folder.path()
        disk = try FaultDisk()
        let store = try Store(path: path, key: .numbered(1), configuration: keeping.configuration())
        try store.write { tx in try Ledger.create(tx) }
        try store.close()
    }

    /// Strikes this many times.
    func run(faultCount: Int) async throws -> Tally {
        var tally = Tally()
        while tally.triedCount < faultCount {
            let fault = nextFault()
            problems = []
            do {
                guard try await strike(fault) else { continue }
                try check()
            } catch {
                problems.append("not even usable after the fault: \(error)")
            }
            let number = tally.triedCount
            tally.add(problems, "\(keeping), fault \(number): \(fault)")
            // A problem that was found once would be reported again and again.
            if !problems.isEmpty { break }
            if tally.triedCount % 10 == 0 { try checkFromOutside(&tally) }
        }
        if problems.isEmpty { try close() }
        return tally
    }

    // MARK: Faults

    private func nextFault() -> Fault {
        let kinds: FaultDisk.Kinds =
            [
                .write, .write, .sync, .sync, .read, .truncate, .open, .delete, .shm, .lock,
                .access,
                .size, .changing, [.write, .read, .sync, .open, .lock, .shm],
            ].randomElement(using: &random) ?? .write
        let isWrite = kinds == .write
        let code: Int32 = isWrite && Int.random(in: 0..<4, using: &random) == 0 ? SQLITE_FULL : 0
        let action: FaultDisk.Action =
            switch defect {
            case .diskLies: .lie
            case _ where isWrite && Bool.random(using: &random): .shorten
            default: .fail
            }
        let count: Int? = [1, 1, 1, 2, 5, nil].randomElement(using: &random) ?? 1
        return Fault(
            kinds: kinds, skip: Int.random(in: 0..<(isWrite ? 24 : 6), using: &random),
            count: count, action: action, code: code,
            isWhileOpening: Int.random(in: 0..<6, using: &random) == 0,
            isConcurrent: Bool.random(using: &random))
    }

    /// Returns `false` if nothing was struck: a store opens few files and rarely truncates.
    private func strike(_ fault: Fault) async throws -> Bool {
        let before = disk.struckCount
        defer { disk.disarm() }
        if fault.isWhileOpening {
            try close()
            disk.arm(
                fault.kinds, skip: fault.skip, count: fault.count, fault.action, code: fault.code)
            await attempt("opening") { _ = try self.opened() }
            return disk.struckCount > before
        }
        _ = try opened()
        disk.arm(fault.kinds, skip: fault.skip, count: fault.count, fault.action, code: fault.code)
        for _ in 0..<4 where disk.struckCount == before {
            if fault.isConcurrent { await writeAsTasks() } else { writeOnThread() }
        }
        // Closing checkpoints the WAL, and deletes it.
        if disk.struckCount == before, Bool.random(using: &random) {
            await attempt("closing") { try self.close() }
        }
        return disk.struckCount > before
    }

    // MARK: Work

    private func writeOnThread() {
        for _ in 0..<3 {
            let entry = nextEntry()
            note(entry, Result { try opened().write { tx in try Ledger.post(entry, tx) } })
        }
        do {
            _ = try opened().read { tx in
                try tx.firstRow("SELECT count(*), sum(length(filler)) FROM entry, total")
            }
        } catch {
            judge(error, "reading")
        }
    }

    private func writeAsTasks() async {
        guard let store = try? opened() else { return }
        let entries = (0..<6).map { _ in nextEntry() }
        await withTaskGroup(of: (Ledger.Entry, Result<Void, any Error>).self) { group in
            for entry in entries {
                group.addTask {
                    do {
                        try await store.write { tx in try Ledger.post(entry, tx) }
                        return (entry, .success(()))
                    } catch {
                        return (entry, .failure(error))
                    }
                }
            }
            for await (entry, result) in group { note(entry, result) }
        }
    }

    private func nextEntry() -> Ledger.Entry {
        lastNumber += 1
        return Ledger.Entry(worker: lastNumber % Ledger.workerCount, number: lastNumber)
    }

    private func note(_ entry: Ledger.Entry, _ result: Result<Void, any Error>) {
        switch result {
        case .success: acknowledged.insert(entry)
        case .failure(let error):
            judge(error, "writing")
            if defect == .acknowledgesFailures { acknowledged.insert(entry) }
        }
    }

    private func attempt(_ name: String, _ work: () throws -> Void) async {
        do { try work() } catch { judge(error, name) }
    }

    /// Every failure is a `StoreError` with a disk's error: none blames the key or the file.
    private func judge(_ error: any Error, _ name: String) {
        failureCount += 1
        guard let error = error as? StoreError else {
            problems.append("\(name) threw \(type(of: error))")
            return
        }
        let codes: [StoreError.Code] = [.io, .full, .rolledBack, .busy, .closed]
        if !codes.contains(error.code) { problems.append("\(name): \(error)") }
    }

    // MARK: What is there

    /// The store goes on after the fault.
    private func check() throws {
        let found: Set<Ledger.Entry>
        do {
            found = try entries()
        } catch {
            problems.append("not usable: \(error)")
            try close()
            found = try entries()
        }
        compare(found)
    }

    private func compare(_ found: Set<Ledger.Entry>) {
        let lost = acknowledged.subtracting(found)
        let returned = found.subtracting(acknowledged)
        if !lost.isEmpty { problems.append("acknowledged and lost: \(lost)") }
        if !returned.isEmpty { problems.append("thrown and there: \(returned)") }
    }

    /// Starts again from an empty store, because a check takes longer the more there is.
    private func forget() throws {
        try opened().write { tx in try Ledger.clear(tx) }
        acknowledged = []
    }

    private func entries() throws -> Set<Ledger.Entry> {
        let contents = try opened().read { tx in try Ledger.contents(tx) }
        problems += contents.problems
        return contents.entries
    }

    /// Checks the same through the system's VFS, after the store was closed.
    private func checkFromOutside(_ tally: inout Tally) throws {
        try close()
        problems = []
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist,
            configuration: .testing(keeping.journalMode))
        let integrity = try connection.firstRow("PRAGMA integrity_check")?.get(0, as: String.self)
        if integrity != "ok" { problems.append("integrity: \(integrity ?? "none")") }
        connection.close()
        compare(try entries())
        try forget()
        guard !problems.isEmpty else { return }
        tally.addLate("\(keeping), from outside: \(problems.joined(separator: "; "))")
    }

    private func opened() throws -> Store {
        if let store { return store }
        var configuration = keeping.configuration(disk)
        // The engine does this by itself after 1 000 pages; 30 make it happen often enough.
        configuration.checkpointPageCount = 30
        let opened = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
        store = opened
        return opened
    }

    private func close() throws {
        defer { store = nil }
        try store?.close()
    }
}
