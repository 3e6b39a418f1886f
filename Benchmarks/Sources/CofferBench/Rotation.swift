import CWorkload
import Coffer
import Synchronization
import Workloads

/// Rotations of a store that a key file opens, and a server that goes on meanwhile.
struct Rotation {
    let run: Run

    init(_ run: Run) { self.run = run }

    /// Three figures of each rotation: the pause of writes, the time between both verifications,
    /// and the whole.
    func rotate() throws {
        let items = Item.make(1...run.rows)
        for _ in 0..<run.repeats {
            let store = try filled(items)
            let megabytes = Double(run.fileByteCount) / 1e6
            let times = PhaseTimes()
            let start = bench_now()
            let report = try store.rotate { times.begin($0.phase) }
            let end = bench_now()
            guard report.isFinished else { throw Missing() }
            let (written, read) = (Check(items), Check(try all(store)))
            func figure(_ workload: String, _ time: Double) {
                run.figure(workload, time, units: megabytes, written: written, read: read)
            }
            figure("rotate-pause", report.pause / .microseconds(1))
            figure("rotate-move", try times.between(.rotating, .verifyingAgain))
            figure("rotate", end - start)
            try store.close()
        }
    }

    /// A thousand writes a second by 64 tasks, and lookups by eight tasks: alone, and through ten
    /// rotations and a new root. A call that fails ends the run.
    func serve() async throws {
        for _ in 0..<run.repeats {
            let items = Item.make(1...3 * run.rows)
            let store = try filled(Array(items.prefix(run.rows)), readers: 8)
            let server = Server(run, store, items)
            try await server.measure("serve-quiet") {
                try await Task.sleep(for: .seconds(3))
            }
            try await server.measure("serve-rotating") {
                for _ in 0..<10 {
                    guard try await store.rotate().isRecorded else { throw Missing() }
                }
                guard try await store.replaceRootKey().isNewRoot else { throw Missing() }
            }
            try await store.close()
        }
    }

    private func filled(_ items: [Item], readers: Int = 1) throws -> Store {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in try tx.insert(items) }
        try filling.close()
        return try run.openStore(readers: readers)
    }

    private func all(_ store: Store) throws -> [Item] {
        try store.read { tx in try tx.fetch(Item.all) }
    }
}

/// The time at which each step of a rotation began.
private final class PhaseTimes: Sendable {
    private let times = Mutex<[RotationProgress.Phase: Double]>([:])

    func begin(_ phase: RotationProgress.Phase) {
        let now = bench_now()
        times.withLock { if $0[phase] == nil { $0[phase] = now } }
    }

    /// In µs.
    func between(
        _ first: RotationProgress.Phase, _ second: RotationProgress.Phase
    ) throws -> Double {
        try times.withLock { times in
            guard let start = times[first], let end = times[second] else { throw Missing() }
            return end - start
        }
    }
}

/// Tasks that write in time, and tasks that look up with a pause.
private final class Server: Sendable {
    private let run: Run
    private let store: Store
    /// The first `run.rows` are there at the beginning; the others are written in their order.
    private let items: [Item]
    private let nextIndex: Atomic<Int>
    private let isOver = Atomic(false)

    init(_ run: Run, _ store: Store, _ items: [Item]) {
        self.run = run
        self.store = store
        self.items = items
        nextIndex = Atomic(run.rows)
    }

    /// Serves until `work` has ended. Prints `workload` for the writes, and with "-read" for the
    /// lookups.
    func measure(_ workload: String, while work: () async throws -> Void) async throws {
        isOver.store(false, ordering: .relaxed)
        let (writes, reads) = try await withThrowingTaskGroup(
            of: (isWrite: Bool, latencies: [Double]).self
        ) { group in
            let first = nextIndex.load(ordering: .relaxed)
            let start = bench_now()
            for _ in 0..<Int(bench_writers) {
                group.addTask { [self] in
                    (true, try await write(from: first, since: start))
                }
            }
            for reader in 0..<8 {
                group.addTask { [self] in (false, try await look(reader)) }
            }
            try await work()
            isOver.store(true, ordering: .relaxed)
            return try await group.reduce(into: ([Double](), [Double]())) { all, part in
                if part.isWrite { all.0 += part.latencies } else { all.1 += part.latencies }
            }
        }
        let count = nextIndex.load(ordering: .relaxed)
        let written = Check(Array(items.prefix(count)))
        let read = Check(try await store.read { tx in try tx.fetch(Item.all) })
        run.latencies(workload, writes, written: written, read: read)
        run.latencies("\(workload)-read", reads, written: written, read: read)
    }

    /// Takes the next item again and again, and writes it when it is due. A write that begins late
    /// counts from the time when it was due.
    private func write(from first: Int, since start: Double) async throws -> [Double] {
        var latencies: [Double] = []
        while !isOver.load(ordering: .relaxed) {
            let index = nextIndex.wrappingAdd(1, ordering: .relaxed).oldValue
            guard index < items.count else { throw Missing() }
            let due = start + Double((index - first) * Int(bench_pace_us))
            var begun = due
            if due > bench_now() {
                try await Task.sleep(for: .microseconds(due - bench_now()))
                begun = bench_now()
            }
            try await store.write { [items] tx in try tx.insert(items[index]) }
            latencies.append(bench_now() - begun)
        }
        return latencies
    }

    private func look(_ reader: Int) async throws -> [Double] {
        var latencies: [Double] = []
        var index = reader
        while !isOver.load(ordering: .relaxed) {
            let key = Int64(run.shuffled(index % run.rows) + 1)
            let begun = bench_now()
            guard try await store.read({ tx in try tx.find(Item.self, key) }) != nil else {
                throw Missing()
            }
            latencies.append(bench_now() - begun)
            index += 8
            try await Task.sleep(for: .microseconds(bench_pause_us))
        }
        return latencies
    }
}
