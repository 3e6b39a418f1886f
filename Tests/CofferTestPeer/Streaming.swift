// How much memory records need that are streamed one by one. It is measured for the whole process,
// and all tests share one process.

import Foundation

@testable import Coffer

private struct Page: Record {
    var id: Int
    var text: String
    var bytes: Data
}

private struct StoredPage: Record {
    static let access = RecordAccess.storedProperties
    static var table: String { "page" }
    var id: Int
    var text: String
    var bytes: Data
}

/// Writes 40 MB. A separate process does it, so that its memory is not in the next process's
/// figure.
func fillPages(_ store: Store) throws -> String {
    let (text, bytes) = (String(repeating: "x", count: 50_000), Data(count: 50_000))
    try store.write { tx in
        try tx.create(Page.self)
        for id in 1...400 { try tx.insert(Page(id: id, text: text, bytes: bytes)) }
    }
    return "filled"
}

/// Returns by how many MB each way of reading all pages has raised the highest memory of the
/// process: one by one, then at once.
func measureStreaming(_ store: Store, isStored: Bool) throws -> String {
    isStored
        ? try measure(store, StoredPage.self) { $0.text.utf8.count + $0.bytes.count }
        : try measure(store, Page.self) { $0.text.utf8.count + $0.bytes.count }
}

/// Streams more into a blob than the disk has room for, and returns what is there afterwards.
func streamIntoFullDisk() throws -> String {
    let path = next()
    let store = try Store(path: path, key: nextKey(), configuration: configuration("wal"))
    let byteCount = Int(next()) ?? 0
    try store.write { tx in
        try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, data BLOB)")
        try tx.execute("INSERT INTO t VALUES (1, x'010203')")
    }
    let isOver = DispatchSemaphore(value: 0)
    Task.detached {
        let source = AsyncStream<Data> { Data(count: 100_000) }
        do {
            try await store.writeBlob(
                "data", in: "t", row: 1, byteCount: byteCount, from: source)
            say("written")
        } catch {
            say("\((error as? StoreError).map { "\($0.code)" } ?? "\(error)")")
        }
        isOver.signal()
    }
    isOver.wait()
    let length = try store.read { tx in
        try tx.firstRow("SELECT length(data) FROM t")?.get(0, as: Int.self)
    }
    say("\(length ?? -1) bytes")
    let folder = URL(filePath: path).deletingLastPathComponent().path
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    say("files \(names.sorted().joined(separator: " "))")
    try store.write { tx in try tx.execute("UPDATE t SET data = NULL") }
    return "wrote"
}

/// Uploads more than the disk has room for, and returns what is there afterwards.
func uploadIntoFullDisk() throws -> String {
    let path = next()
    let store = try Store(path: path, key: nextKey(), configuration: configuration("wal"))
    let byteCount = Int(next()) ?? 0
    // To free chunks needs room too: somebody has to make some.
    let other = URL(filePath: path).deletingLastPathComponent().appending(path: "other")
    try Data(count: 8 << 20).write(to: other)
    let films = AttachmentBucket<String>("films")
    try store.write { tx in try tx.set(Data([1, 2, 3]), for: "a", in: films) }
    let isOver = DispatchSemaphore(value: 0)
    Task.detached {
        let source = AsyncStream<Data> { Data(count: 100_000) }
        do {
            try await store.set(contentsOf: source, for: "a", in: films, byteCount: byteCount)
            say("uploaded")
        } catch {
            say("\((error as? StoreError).map { "\($0.code)" } ?? "\(error)")")
        }
        isOver.signal()
    }
    isOver.wait()
    say("\(try store.attachment("a", in: films)?.byteCount ?? -1) bytes")
    try FileManager.default.removeItem(at: other)
    // On a full disk the upload may not have been able to give its bytes up.
    try store.write { tx in
        for upload in try tx.uploads(in: films) { try tx.discard(upload) }
    }
    try store.sweepExpiredEntries()
    let counts = try store.read { tx in
        try ["contents", "chunks"].map { name in
            let sql = SQL(text: "SELECT count(*) FROM \"coffer:\(name)\"")
            return "\(try tx.requireScalar(sql, as: Int.self)) \(name)"
        }
    }
    say(counts.joined(separator: ", "))
    try store.write { tx in try tx.set(Data(count: 100_000), for: "b", in: films) }
    return "wrote"
}

private func measure<R: Record>(
    _ store: Store, _ type: R.Type, _ size: (R) -> Int
) throws -> String {
    try store.read { tx in
        let access = try R.accessReport().access
        let before = try highestMemory()
        var byteCount = 0
        try tx.forEach(R.all) { byteCount += size($0) }
        let between = try highestMemory()
        let all = try tx.fetch(R.all)
        let after = try highestMemory()
        return "\(access), \(byteCount) bytes, \((between - before) >> 20), \(all.count) records, "
            + "\((after - between) >> 20)"
    }
}

/// In bytes.
func highestMemory() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
    return (line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0)
        << 10
}
