import Coffer
import Foundation

// A complete download manager: the files to fetch and their progress, and the manuals made from
// them, in one encrypted file. Many tasks report at once, and each report that returned is on disk.
//
//     swift run --package-path Examples Downloads [folder]

// MARK: The records

/// A file that is being fetched, or has been. The table comes from the struct.
struct Download: Record {
    static let key = ["url"]
    static var indexes: [Index<Self>] { [Index(\.created)] }

    var url: URL
    var sourcePage: URL
    var title: String
    var bytesDone = 0
    var bytesTotal: Int
    var created: Date
}

/// A manual, made from a file that has arrived. It is deleted with its download.
struct Manual: Record {
    static let key = ["url"]
    static var references: [Reference<Self>] {
        [Reference(\.url, to: Download.self, onDelete: .cascade)]
    }

    var url: URL
    var title: String
    var thumbnail: Data?
    var article: String
}

// MARK: The store

/// The only type that uses the store. Any number of tasks may call it at once.
struct DownloadManager: Sendable {
    private let store: Store

    /// Opens the store in a folder, and makes both on the first start.
    init(folder: URL) async throws {
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let key = try Self.key(in: folder.appending(path: "key"))
        store = try await Store(path: folder.appending(path: "downloads.db").path, key: key)
        // Makes the tables, and adds what a later version of the types may add.
        try await store.write { tx in
            try tx.create(Download.self)
            try tx.create(Manual.self)
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

    /// Adds new downloads; known ones keep their progress.
    ///
    /// - Returns: The number of new downloads.
    func add(_ downloads: [Download]) async throws -> Int {
        try await store.write { tx in
            var count = 0
            for download in downloads where try tx.find(Download.self, download.url) == nil {
                try tx.insert(download)
                count += 1
            }
            return count
        }
    }

    /// Records how far a download has come, and changes nothing else of it.
    ///
    /// The reports of tasks that wait at the same time share one commit.
    func report(_ download: Download) async throws {
        try await store.write { tx in try tx.update(download, only: \.bytesDone) }
    }

    /// The last bytes and the manual come together, or neither does.
    func finish(_ download: Download, with manual: Manual) async throws {
        try await store.write { tx in
            try tx.update(download, only: \.bytesDone)
            try tx.upsert(manual)
        }
    }

    func download(from url: URL) async throws -> Download? {
        try await store.read { tx in try tx.find(Download.self, url) }
    }

    func manual(from url: URL) async throws -> Manual? {
        try await store.read { tx in try tx.find(Manual.self, url) }
    }

    func newestFirst(limit: Int) async throws -> [Download] {
        try await store.read { tx in
            try tx.fetch(Download.order(by: \.created, .descending).limit(limit))
        }
    }

    /// The downloads that have not arrived.
    func incomplete() async throws -> [Download] {
        try await store.read { tx in
            try tx.fetch(Download.where(\.bytesDone < \.bytesTotal).order(by: \.created))
        }
    }
}

// MARK: The tasks

extension DownloadManager {
    /// Fetches what is missing, every file in its own task, from where the last run stopped.
    ///
    /// - Returns: The number of the tasks' reports.
    func fetchIncomplete() async throws -> Int {
        let downloads = try await incomplete()
        return try await withThrowingTaskGroup(of: Int.self) { group in
            for download in downloads { group.addTask { try await fetch(download) } }
            return try await group.reduce(0, +)
        }
    }

    private func fetch(_ download: Download) async throws -> Int {
        var download = download
        var reportCount = 0
        for await byteCount in Network.pieces(of: download) {
            download.bytesDone += byteCount
            reportCount += 1
            if download.bytesDone < download.bytesTotal {
                try await report(download)
            } else {
                try await finish(download, with: Network.manual(for: download))
            }
        }
        return reportCount
    }
}

/// Replaces a network: put `URLSession` here, and the rest can stay.
enum Network {
    static let pages = [
        ("Sextant", 412_160), ("Barometer", 98_304), ("Theodolite", 1_048_576),
        ("Chronometer", 5_000), ("Pantograph", 65_537), ("Planimeter", 262_144),
    ]

    /// The user's choice, a minute apart.
    static let chosen = pages.enumerated().map { position, page in
        Download(
            url: url(page.0, "pdf"), sourcePage: url(page.0, "html"), title: page.0,
            bytesTotal: page.1,
            created: Date(timeIntervalSince1970: 1_769_936_400 + Double(position) * 60))
    }

    static func url(_ title: String, _ suffix: String) -> URL {
        URL(string: "https://manuals.example/")!.appending(path: "\(title.lowercased()).\(suffix)")
    }

    /// The sizes of a file's pieces as they arrive, in bytes, beginning after the bytes that are
    /// there.
    static func pieces(of download: Download) -> AsyncStream<Int> {
        AsyncStream { continuation in
            for start in stride(from: download.bytesDone, to: download.bytesTotal, by: 65_536) {
                continuation.yield(min(65_536, download.bytesTotal - start))
            }
            continuation.finish()
        }
    }

    static func manual(for download: Download) -> Manual {
        let thumbnail = download.bytesTotal < 65_536 ? nil : Data(repeating: 0x7f, count: 2_048)
        return Manual(
            url: download.url, title: "\(download.title), a manual", thumbnail: thumbnail,
            article: "How to use a \(download.title.lowercased()).")
    }
}

// MARK: The output

@main
enum Downloads {
    static func main() async throws {
        let folder =
            CommandLine.arguments.dropFirst().first.map { URL(filePath: $0) }
            ?? URL.temporaryDirectory.appending(path: "coffer-downloads")
        print("store      \(folder.appending(path: "downloads.db").path)")
        let manager = try await DownloadManager(folder: folder)
        print("added      \(try await manager.add(Network.chosen)) downloads")
        print("incomplete \(try await manager.incomplete().count)")
        print("reports    \(try await manager.fetchIncomplete())")

        print("newest first")
        for download in try await manager.newestFirst(limit: 4) {
            let percent = 100 * download.bytesDone / download.bytesTotal
            let title = download.title.padding(toLength: 12, withPad: " ", startingAt: 0)
            print("    \(download.created.ISO8601Format())  \(title) \(percent) %")
        }

        let url = Network.url("Barometer", "pdf")
        if let download = try await manager.download(from: url),
            let manual = try await manager.manual(from: url)
        {
            print("look-up    \(url)")
            print("    from \(download.sourcePage), \(download.bytesDone) bytes")
            print("    \(manual.title): \(manual.article)")
        }
        try await manager.close()
    }
}
