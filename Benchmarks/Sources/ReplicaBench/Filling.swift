import Coffer
import Workloads

/// Makes a store of the rows that the plaintext twin has too.
struct Filling {
    private let place: Place
    private static let portion = 10_000

    init(_ place: Place) { self.place = place }

    func run(rowCount: Int) throws {
        let store = try Store(
            path: place.path, key: Place.key, configuration: Place.configuration)
        try store.write { tx in try tx.create(Item.self) }
        for first in stride(from: 1, through: rowCount, by: Self.portion) {
            let items = Item.make(first...min(first + Self.portion - 1, rowCount))
            try store.write { tx in try tx.insert(items) }
        }
        try store.close()
        try Place.say(["rows": rowCount])
    }
}

extension Item: Record {
    public static let access = RecordAccess.storedProperties
}
