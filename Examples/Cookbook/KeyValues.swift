import Coffer
import Foundation

/// Values under keys, and files.
enum KeyValues {
    static let recipes = [setting, session, limit, jobs, photo]

    enum Theme: String, Codable { case light, dark }

    static let setting = Recipe("setting", "keep the settings of a program") { kitchen in
        let store = try await kitchen.store()
        let theme = Setting("theme", default: Theme.light)
        let before = try await store.get(theme)
        try await store.set(.dark, for: theme)
        let after = try await store.get(theme)
        try kitchen.check("the default, then the new one", before == .light && after == .dark)
    }

    struct Session: Codable, Equatable {
        var user: String
    }

    static let session = Recipe("session", "keep sessions that expire") { kitchen in
        let store = try await kitchen.store()
        let sessions = Bucket<String, Session>("sessions", lifetime: .seconds(1800))
        try await store.set(Session(user: "ada"), for: "token", in: sessions)
        let session = try await store.get("token", in: sessions)
        let rest = try await store.write { tx -> RemainingLifetime? in
            try tx.touch("token", in: sessions)  // another 1 800 s from now
            return try tx.remainingLifetime(of: "token", in: sessions)
        }
        try kitchen.check("it lives", session?.user == "ada" && rest != nil && rest != .unlimited)
    }

    static let limit = Recipe("limit", "let a user try five times a minute") { kitchen in
        let store = try await kitchen.store()
        let attempts = Bucket<String, Int>("attempts", lifetime: .seconds(60))
        var isAllowed = true
        for _ in 1...6 {
            isAllowed = try await store.increment("ada", in: attempts) <= 5
        }
        try kitchen.check("the sixth is refused", !isAllowed)
    }

    static let jobs = Recipe("jobs", "hand each job to one worker, the oldest first") { kitchen in
        let store = try await kitchen.store()
        let jobs = Bucket<CompositeKey<Date, UUID>, String>("jobs")
        for number in 1...20 {
            let due = Date(timeIntervalSinceNow: Double(number))
            try await store.set("job \(number)", for: CompositeKey(due, UUID()), in: jobs)
        }
        let done = try await withThrowingTaskGroup(of: [String].self) { workers in
            for _ in 1...4 {
                workers.addTask {
                    var own: [String] = []
                    while let job = try await store.popFirst(in: jobs) { own.append(job.value) }
                    return own
                }
            }
            return try await workers.reduce(into: []) { $0 += $1 }
        }
        try kitchen.check("each was done once", done.count == 20 && Set(done).count == 20)
    }

    struct Film: Record {
        var id: UUID
        var title: String
        static let videos = AttachmentBucket("videos", of: \Film.id)
    }

    static let photo = Recipe("video", "store a file with its record, and stream it") { kitchen in
        let store = try await kitchen.store()
        let film = Film(id: UUID(), title: "Metropolis")
        try await store.write { tx in
            try tx.create(Film.self)
            try tx.insert(film)
        }
        let upload = AsyncStream { stream in
            for number in 0..<100 { stream.yield(Data(repeating: UInt8(number), count: 10_000)) }
            stream.finish()
        }
        try await store.set(contentsOf: upload, for: film.id, in: Film.videos)
        var count = 0
        for try await chunk in store.chunks(of: film.id, in: Film.videos) { count += chunk.count }
        try await store.write { tx in _ = try tx.delete(film) }  // with its video
        let rest = try await store.attachment(film.id, in: Film.videos)
        try kitchen.check("all bytes came, and went", count == 1_000_000 && rest == nil)
    }
}
