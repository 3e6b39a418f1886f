import Coffer
import Dispatch
import Foundation

/// Where the registers are.
public enum RegisterPlace: String, Sendable, CaseIterable {
    /// In the rows of a table.
    case table
    /// In the entries of a bucket; a register without an entry is 0.
    case bucket
}

/// Clients that read and change a few numbers of one store at the same time, some as tasks, some as
/// threads, and record what they saw.
public struct RegisterClients: Sendable {
    public static let keyCount = 3
    /// The number of clients in each of the two processes.
    public static let clientCount = 4

    private let store: Store
    private let firstClient: Int
    private let place: RegisterPlace
    /// For tests of tests: reads return what the client saw first.
    private let isStale: Bool

    public init(
        store: Store, firstClient: Int, place: RegisterPlace = .table, isStale: Bool = false
    ) {
        self.store = store
        self.firstClient = firstClient
        self.place = place
        self.isStale = isStale
    }

    public static func create(_ tx: borrowing WriteTransaction, in place: RegisterPlace) throws {
        guard place == .table else { return }
        try tx.execute("CREATE TABLE register(key INTEGER PRIMARY KEY, value INTEGER NOT NULL)")
    }

    /// Sets all registers to 0.
    public static func reset(_ tx: borrowing WriteTransaction, in place: RegisterPlace) throws {
        guard place == .table else {
            try tx.removeAll(in: registers)
            return
        }
        for key in 0..<keyCount {
            try tx.execute("INSERT OR REPLACE INTO register VALUES (\(key), 0)")
        }
    }

    /// Nanoseconds since the machine started: the same for all its processes.
    public static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// Runs all clients from a point of time on, and returns what they saw. A call that failed with
    /// an error did nothing, so it is not part of the history.
    public func run(seed: UInt64, operationCount: Int, from time: UInt64) async -> [RegisterCall] {
        await withTaskGroup(of: [RegisterCall].self) { group in
            for client in firstClient..<firstClient + Self.clientCount {
                group.addTask {
                    var run = Run(self, client: client, seed: seed)
                    guard client % 2 == 0 else {
                        return await run.onThread(operationCount, from: time)
                    }
                    return await run.asTask(operationCount, from: time)
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }

    // MARK: One client

    private struct Run: Sendable {
        let clients: RegisterClients
        let client: Int
        var random: SeededGenerator
        var written = 0
        /// The value that it last saw of each register.
        var seen = [Int](repeating: 0, count: keyCount)
        var operations: [RegisterCall] = []

        init(_ clients: RegisterClients, client: Int, seed: UInt64) {
            self.clients = clients
            self.client = client
            random = SeededGenerator(seed: seed &* 64 &+ UInt64(client))
        }

        mutating func asTask(_ count: Int, from time: UInt64) async -> [RegisterCall] {
            let store = clients.store
            while now < time { await Task.yield() }
            for _ in 0..<count {
                let (key, plan) = next()
                let start = now
                let action: RegisterCall.Action?
                switch (plan, clients.place) {
                case (.read, .table):
                    action = try? await store.read { tx in try plan.read(key, tx) }
                case (.read, .bucket):
                    let value = try? await store.get(key, default: 0, in: registers)
                    action = value.map { .read($0) }
                case (_, .table): action = try? await store.write { tx in try plan.write(key, tx) }
                case (_, .bucket):
                    action = try? await store.write { tx in try plan.writeEntry(key, tx) }
                }
                note(key, action, start)
            }
            return operations
        }

        func onThread(_ count: Int, from time: UInt64) async -> [RegisterCall] {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    var run = self
                    continuation.resume(returning: run.blocking(count, from: time))
                }
            }
        }

        private mutating func blocking(_ count: Int, from time: UInt64) -> [RegisterCall] {
            let store = clients.store
            while now < time { usleep(50) }
            for _ in 0..<count {
                let (key, plan) = next()
                let start = now
                let action: RegisterCall.Action?
                switch (plan, clients.place) {
                case (.read, .table): action = try? store.read { tx in try plan.read(key, tx) }
                case (.read, .bucket):
                    let value = try? store.get(key, default: 0, in: registers)
                    action = value.map { .read($0) }
                case (_, .table): action = try? store.write { tx in try plan.write(key, tx) }
                case (_, .bucket):
                    action = try? store.write { tx in try plan.writeEntry(key, tx) }
                }
                note(key, action, start)
            }
            return operations
        }

        private mutating func next() -> (key: Int, plan: Plan) {
            let key = Int.random(in: 0..<keyCount, using: &random)
            written += 1
            // No two writes of a history set the same value.
            let value = client * 1000 + written
            let plan: Plan =
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<4: .read
                case 4 where clients.place == .bucket: .take
                case 4..<6: .write(value)
                case 6..<8: .add(100_000)
                default: .exchange(old: seen[key], new: value)
                }
            return (key, plan)
        }

        private mutating func note(_ key: Int, _ action: RegisterCall.Action?, _ start: UInt64) {
            let end = now
            guard var action else { return }
            switch action {
            case .read(let value):
                if clients.isStale { action = .read(seen[key]) } else { seen[key] = value }
            case .write(let value): seen[key] = value
            case .add(_, let sum): seen[key] = sum
            case .exchange(_, let new, let isDone): if isDone { seen[key] = new }
            case .take: seen[key] = 0
            }
            operations.append(
                RegisterCall(client: client, key: key, action: action, start: start, end: end))
        }
    }

    /// The next call of a client.
    private enum Plan: Sendable {
        case read
        case write(Int)
        case add(Int)
        case exchange(old: Int, new: Int)
        /// Only in a bucket.
        case take

        func read(
            _ key: Int, _ tx: borrowing some Reading & ~Copyable
        ) throws -> RegisterCall.Action {
            .read(try value(key, tx))
        }

        func write(_ key: Int, _ tx: borrowing WriteTransaction) throws -> RegisterCall.Action {
            switch self {
            case .read: return .read(try value(key, tx))
            case .write(let value):
                try set(key, value, tx)
                return .write(value)
            case .add(let number):
                let sum = try value(key, tx) + number
                try set(key, sum, tx)
                return .add(number, sum: sum)
            case .exchange(let old, let new):
                guard try value(key, tx) == old else {
                    return .exchange(old: old, new: new, isDone: false)
                }
                try set(key, new, tx)
                return .exchange(old: old, new: new, isDone: true)
            case .take: throw WorkloadError("a table has no take")
            }
        }

        func writeEntry(
            _ key: Int, _ tx: borrowing WriteTransaction
        ) throws -> RegisterCall.Action {
            switch self {
            case .read: return .read(try tx.get(key, default: 0, in: registers))
            case .write(let value):
                try tx.set(value, for: key, in: registers)
                return .write(value)
            case .add(let number):
                return .add(number, sum: try tx.increment(key, by: number, in: registers))
            case .exchange(let old, let new):
                let result = try tx.compareExchange(
                    key, expected: old == 0 ? nil : old, desired: new, in: registers)
                return .exchange(old: old, new: new, isDone: result.exchanged)
            case .take:
                let entry = try tx.popFirst(in: registers, .from(key, through: key))
                return .take(entry?.value ?? 0)
            }
        }

        private func value(_ key: Int, _ tx: borrowing some Reading & ~Copyable) throws -> Int {
            guard let row = try tx.firstRow("SELECT value FROM register WHERE key = \(key)") else {
                throw WorkloadError("register \(key) is missing")
            }
            return try row.get(0)
        }

        private func set(_ key: Int, _ value: Int, _ tx: borrowing WriteTransaction) throws {
            try tx.execute("UPDATE register SET value = \(value) WHERE key = \(key)")
        }
    }
}

private let registers = Bucket<Int, Int>("registers")
