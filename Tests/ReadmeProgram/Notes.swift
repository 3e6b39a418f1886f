import Coffer
import Foundation

struct Note: Record {
    var id = UUID()
    var title: String
    var pinned = false
}

@main struct Notes {
    static func main() async throws {
        let store = try await Store(path: "notes.db", key: .passphrase("correct horse battery"))
        try await store.write { tx in  // returned = durable; threw = nothing happened
            try tx.insert(Note(title: "Buy milk", pinned: true))
            try tx.set(Date(), for: "ada", in: Bucket("last seen"))
        }
        let pinned = try await store.read { tx in
            try tx.fetch(Note.where(\.pinned == true).order(by: \.title).limit(20))
        }
        print(pinned.map(\.title))
    }
}
