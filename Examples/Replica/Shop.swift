import Coffer
import CofferReplica
import Foundation
import Synchronization

/// An order, whose text follows from its number, so that a wrong one is noticed.
struct Order: Record {
    var id: Int
    var text: String

    init(_ id: Int) {
        self.id = id
        text = Self.text(id)
    }

    var isRight: Bool { text == Self.text(id) }

    private static func text(_ id: Int) -> String {
        "order \(id): " + String(repeating: "\(id % 7)", count: id % 500)
    }
}

/// The other process of the example: takes orders, and tells which of them the remote has.
struct Shop {
    private let path: String
    private let place: Place

    /// The process as `ShopProcess` starts it; `nil` for any other.
    init?() throws {
        var words = CommandLine.arguments.dropFirst()
        guard words.popFirst() == "shop", let path = words.popFirst() else { return nil }
        (self.path, place) = (path, Place(words: Array(words)))
    }

    static func key() -> StoreKey { .passphrase("correct horse battery staple") }

    static func orders(_ path: String) async throws -> [Order] {
        let store = try await Store(path: path, key: key())
        let orders = try await store.read { tx in try tx.fetch(Order.all) }
        try await store.close()
        return orders
    }

    func run() async throws {
        let store = try await Store(path: path, key: Self.key())
        let replica = try await store.replicate(to: try place.remote())
        // A line on the input is the mistake.
        let mistakes = Mutex(0)
        Thread.detachNewThread {
            while readLine() != nil { mistakes.withLock { $0 += 1 } }
        }
        var (count, deletedCount) = (0, 0)
        while true {
            let (next, isMistake) = (count, mistakes.withLock { $0 > 0 } && deletedCount == 0)
            try await store.write { tx in
                if isMistake { try tx.delete(Order.all) }
                try tx.insert((1...10).map { Order(next + $0) })
            }
            if isMistake { deletedCount = count }
            count += 10
            let position = try await replica.caughtUp()
            let line = "\(count) \(deletedCount) \(position)\n"
            try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
        }
    }
}
