import Coffer
import CofferReplica
import Workloads

/// Many stores in one process, each with a replica that sends each second.
struct Fleet {
    private let place: Place
    private let count: Int

    init(_ place: Place, count: Int) { (self.place, self.count) = (place, count) }

    func run(seconds: Int) async throws {
        ProcessUse.allowDescriptors()
        var use = Use()
        try use.say("nothing")
        let stores = try await opened()
        use.look()
        try use.say("stores")
        var replicas: [Replica] = []
        for (number, store) in stores.enumerated() {
            let place = try Place(
                path: store.path, folder: "\(place.remote.place)/\(number)")
            replicas.append(try await place.replicate(store, every: .seconds(1)))
        }
        use = Use()
        for second in 0..<seconds {
            for store in stores {
                try await store.write { tx in
                    try tx.execute("INSERT INTO note VALUES (\(second), 'second')")
                }
            }
            for _ in 0..<20 {
                try await Task.sleep(for: .milliseconds(50))
                use.look()
            }
        }
        try use.say("replicas")
        for replica in replicas { try await replica.close() }
        for store in stores { try await store.close() }
    }

    private func opened() async throws -> [Store] {
        var stores: [Store] = []
        for number in 0..<count {
            let store = try await Store(
                path: "\(place.path)-\(number)", key: Place.key,
                configuration: Place.configuration)
            try await store.write { tx in
                try tx.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
            }
            stores.append(store)
        }
        return stores
    }

    /// The most that was seen, and the time since the first look.
    private struct Use {
        private var threadCount = ProcessUse.threadCount
        private var descriptorCount = ProcessUse.descriptorCount
        private let start = ContinuousClock.now
        private let cpu = ProcessUse.cpu

        mutating func look() {
            threadCount = max(threadCount, ProcessUse.threadCount)
            descriptorCount = max(descriptorCount, ProcessUse.descriptorCount)
        }

        func say(_ name: String) throws {
            try Place.say([
                "what": name, "threads": threadCount, "descriptors": descriptorCount,
                "memory": ProcessUse.residentByteCount, "cpu": ProcessUse.cpu - cpu,
                "seconds": start.duration(to: .now) / .seconds(1),
            ])
        }
    }
}
