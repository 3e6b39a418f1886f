import Coffer
import Foundation

/// The only type that uses the store. Any number of tasks may call it at once; writes that wait at
/// the same time share one commit.
struct DownloadStore: Sendable {
    private let store: Store

    /// Opens the store in a folder, and makes it on the first start.
    init(folder: URL) async throws {
        let key = try Self.key(in: folder.appending(path: "key"))
        store = try await Store(path: folder.appending(path: "downloads.db").path, key: key)
        // Makes the tables, and adds what a later version of the type may add.
        try await store.write { tx in
            try tx.create(Download.self)
            try tx.create(Download.manuals)
        }
    }

    /// 32 random bytes in a file that nobody else can read; made on the first start.
    ///
    /// A key is never a constant of the program. On macOS and iOS keep it in the keychain. If it is
    /// in a file, as here, keep the file away from the store: not in the same backup, not on the
    /// same stick.
    private static func key(in file: URL) throws -> StoreKey {
        if !FileManager.default.fileExists(atPath: file.path) {
            // Swift's generator is the system's, which is meant for keys.
            let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
            try Data(bytes).write(to: file, options: .withoutOverwriting)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600], ofItemAtPath: file.path)
        }
        return .raw(try Data(contentsOf: file))
    }

    func close() async throws { try await store.close() }

    // MARK: Reading

    func download(_ id: UUID) async throws -> Download? {
        try await store.read { tx in try tx.find(Download.self, id) }
    }

    func all() async throws -> [Download] {
        try await store.read { tx in try tx.fetch(Download.order(by: \.created)) }
    }

    /// The sum of all breakpoints.
    func bytesDone() async throws -> Int {
        try await store.read { tx in try tx.sum(\Download.bytesDone) }
    }

    /// The manuals' lengths, by their downloads.
    func manuals() async throws -> [UUID: Int] {
        try await store.read { tx in
            let entries = try tx.attachments(in: Download.manuals)
            return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value.byteCount) })
        }
    }

    /// When the next failed download begins again by itself.
    func nextTry() async throws -> Date? {
        try await store.read { tx in
            try tx.fetch(
                Download.where(\.state == .failed && \.nextTry != nil).order(by: \.nextTry).limit(1)
            ).first?.nextTry
        }
    }

    /// The counts, and the first rows for a list.
    func summary(rowCount: Int) async throws -> Summary {
        try await store.read { tx in try Summary(&tx, rowCount: rowCount) }
    }

    /// The same again and again: at once, and after commits have changed them.
    func observeSummary(rowCount: Int) -> ObservedValues<Summary> {
        store.observe { tx in try Summary(&tx, rowCount: rowCount) }
    }

    /// The number of downloads that run, or will by themselves.
    func observeOpenCount() -> ObservedValues<Int> {
        store.observe { tx in
            try tx.count(
                Download.where(
                    [.waiting, .running].contains(\.state)
                        || (\.state == .failed && \.nextTry != nil)))
        }
    }

    // MARK: Commands

    /// Adds new downloads. Known ones keep their progress. A name that is taken gets a number.
    ///
    /// - Returns: The number of new downloads.
    func add(_ downloads: [Download]) async throws -> Int {
        try await store.write { tx in
            var count = 0
            for var download in downloads
            where try tx.count(Download.where(\.url == download.url)) == 0 {
                let name = download.name
                var number = 1
                while try tx.count(Download.where(\.name == download.name)) > 0 {
                    number += 1
                    download.name = "\(number) \(name)"
                }
                try tx.insert(download)
                count += 1
            }
            return count
        }
    }

    /// Lets downloads wait that ran when the program was killed.
    func recover() async throws {
        try await store.write { tx in
            _ = try tx.update(
                Download.where(\.state == .running).set(\.state, to: .waiting))
        }
    }

    /// Marks downloads as running: the oldest of those that wait or are due again.
    func claim(_ count: Int, at time: Date) async throws -> [Download] {
        let isDue: Condition<Download> =
            \.state == .waiting || (\.state == .failed && \.nextTry <= time)
        let due = Download.where(isDue).order(by: \.created).limit(count)
        // A look costs less than a commit.
        guard count > 0, try await store.read({ tx in try tx.count(due) }) > 0 else { return [] }
        return try await store.write { tx in
            var downloads = try tx.fetch(due)
            for index in downloads.indices {
                downloads[index].state = .running
                try tx.update(downloads[index], only: \.state)
            }
            return downloads
        }
    }

    /// Moves a download to another state, for a user.
    ///
    /// - Returns: Whether it was in one of the states.
    func move(
        _ id: UUID, from states: [Download.State], to state: Download.State
    ) async throws -> Bool {
        try await store.write { tx in
            try tx.update(
                Download.where(\.id == id && states.contains(\.state)).set(\.state, to: state)
                    .set(\.attempts, to: 0).set(\.nextTry, to: nil).set(\.reason, to: nil)) > 0
        }
    }

    /// Removes a download. Its manual goes with the row, in the same commit.
    func remove(_ id: UUID) async throws {
        try await store.write { tx in
            _ = try tx.delete(Download.where(\.id == id))
        }
    }

    // MARK: Reports of attempts

    /// Records which version of the file comes, and how many bytes of it are on disk.
    func begin(_ download: Download) async throws {
        try await store.write { tx in
            _ = try tx.updateIfPresent(
                download, only: \.bytesDone, \.bytesTotal, \.version)
        }
    }

    /// Records how far a download has come.
    ///
    /// - Parameter bytesDone: The number of bytes that the partial file has on disk: it was synced.
    func report(_ id: UUID, bytesDone: Int) async throws {
        try await store.write { tx in
            _ = try tx.update(
                Download.where(\.id == id).set(\.bytesDone, to: bytesDone).set(\.attempts, to: 0))
        }
    }

    /// The end and the manual come together, or neither does.
    ///
    /// - Returns: Whether the download still ran.
    func finish(_ id: UUID, manual: Data?) async throws -> Bool {
        try await store.write { tx in
            let running = Download.where(\.id == id && \.state == .running)
            let isDone =
                try tx.update(
                    running.set(\.state, to: .done).set(\.bytesTotal, sql: "bytesDone")
                        .set(\.reason, to: nil)) > 0
            if isDone, let manual { _ = try tx.set(manual, for: id, in: Download.manuals) }
            return isDone
        }
    }

    /// Records that an attempt failed, unless somebody has stopped the download meanwhile.
    ///
    /// - Parameter delay: Gives the seconds before the next attempt by the number of attempts since
    ///   the last byte; `nil` if there is none.
    func fail(
        _ id: UUID, _ reason: String, at time: Date,
        delay: @escaping @Sendable (Int) -> TimeInterval?
    ) async throws {
        try await store.write { tx in
            guard var download = try tx.find(Download.self, id), download.state == .running
            else { return }
            download.state = .failed
            download.attempts += 1
            download.reason = reason
            download.nextTry = delay(download.attempts).map { time + $0 }
            try tx.update(download, only: \.state, \.attempts, \.reason, \.nextTry)
        }
    }

    /// Claims no byte of a cancelled download any longer: its file may be deleted.
    func forgetBytes(_ id: UUID) async throws {
        try await store.write { tx in
            _ = try tx.update(
                Download.where(\.id == id && \.state == .cancelled).set(\.bytesDone, to: 0)
                    .set(\.bytesTotal, to: nil).set(\.version, to: nil))
        }
    }
}

/// A view of the downloads for a list.
struct Summary: Sendable, Equatable {
    let counts: [Download.State: Int]
    let bytesDone: Int
    let bytesTotal: Int
    /// The running ones, then those that wait for something, then the last ones that are done.
    let rows: [Row]

    struct Row: Sendable, Equatable {
        let name: String
        let state: Download.State
        let bytesDone: Int
        let bytesTotal: Int?
        let attempts: Int
        let reason: String?
        let nextTry: Date?
    }

    init(_ tx: inout ReadTransaction, rowCount: Int) throws {
        counts = try tx.counts(by: \Download.state)
        bytesDone = try tx.sum(\Download.bytesDone)
        bytesTotal = try tx.sum(\Download.bytesTotal)
        var rows: [Row] = []
        for state in [Download.State.running, .failed, .paused, .waiting, .done, .cancelled]
        where rows.count < rowCount {
            let query = Download.where(\.state == state).order(by: \.created)
            rows += try tx.fetch(query.limit(rowCount - rows.count)).map { download in
                Row(
                    name: download.name, state: state, bytesDone: download.bytesDone,
                    bytesTotal: download.bytesTotal, attempts: download.attempts,
                    reason: download.reason, nextTry: download.nextTry)
            }
        }
        self.rows = rows
    }
}
