import Foundation
import Testing

@testable import Coffer

#if canImport(Glibc)
import Glibc
#endif

/// A stream into a blob is spooled first: in memory, then in an encrypted file without a name.
@Suite(.againstHanging, .onOwnThreads) struct BlobSpoolTests {
    private static let chunk = SpoolFile.chunkByteCount
    private static let canary = Data("canary in a stream ".utf8)

    private func make(
        _ mode: Configuration.JournalMode = .wal
    ) throws -> (BlobFixture, Store) {
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        return (fixture, try fixture.store())
    }

    private func stored(_ store: Store) async throws -> Data? {
        try await store.read { tx in
            try tx.firstRow("SELECT data FROM t WHERE id = 1")?.get(0, as: Data?.self) ?? nil
        }
    }

    /// The folder has only the store's own files.
    private func expectNothingLeft(
        _ fixture: BlobFixture, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder.url.path)
        let others = names.filter { name in
            !["", "-wal", "-shm", "-journal"].contains { name == "store.db" + $0 }
        }
        #expect(others == [], sourceLocation: sourceLocation)
    }

    // MARK: Nobody waits for a source

    @Test(arguments: journalModes)
    func `a source that takes its time delays no other write`(
        mode: Configuration.JournalMode
    ) async throws {
        let (fixture, store) = try make(mode)
        let (source, feed) = AsyncStream<Data>.makeStream()
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let slow = AsyncStream<Data> {
            ask.yield()
            return await source.first { _ in true }
        }
        let task = Task {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 5, from: slow)
        }
        var questions = asked.makeAsyncIterator()
        await questions.next()
        feed.yield(Data([9, 9]))
        // The source is asked a second time, so its first chunk was taken.
        await questions.next()
        for flag in 0..<5 {
            try await store.write(timeout: .seconds(20)) { tx in
                try tx.execute("UPDATE t SET flag = \(flag)")
            }
        }
        #expect(try await stored(store) == Data([1, 2, 3]))
        feed.yield(Data([9, 9, 9]))
        await questions.next()
        feed.finish()
        try await task.value
        #expect(try await stored(store) == Data([9, 9, 9, 9, 9]))
        try expectNothingLeft(fixture)
    }

    // MARK: In memory and beyond

    @Test(arguments: [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 3 * chunk + 17], journalModes)
    func `a stream of any size arrives as it was`(
        byteCount: Int, mode: Configuration.JournalMode
    ) async throws {
        let (fixture, store) = try make(mode)
        let data = BlobFixture.bytes(byteCount)
        // Small chunks, chunks larger than what is kept in memory, and slices.
        for size in [300_000, 2 * Self.chunk] {
            let source = AsyncStream<Data> { continuation in
                for start in stride(from: 0, to: byteCount, by: size) {
                    continuation.yield(data[start..<min(start + size, byteCount)])
                }
                continuation.finish()
            }
            try await store.writeBlob("data", in: "t", row: 1, byteCount: byteCount, from: source)
            #expect(try await stored(store) == data)
        }
        try expectNothingLeft(fixture)
    }

    @Test func `a store without a file spools nothing to a disk`() async throws {
        let store = try await Store(.memory)
        try await store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, data BLOB)")
            try tx.execute("INSERT INTO t(id) VALUES (1)")
        }
        let data = BlobFixture.bytes(3 * Self.chunk)
        let source = AsyncStream<Data> { continuation in
            continuation.yield(data)
            continuation.finish()
        }
        try await store.writeBlob("data", in: "t", row: 1, byteCount: data.count, from: source)
        #expect(try await stored(store) == data)
    }

    // MARK: What is on the disk

    #if os(Linux)
    /// The files without a name that this process has open in the folder.
    private func unnamed(in folder: TemporaryFolder) throws -> [String] {
        let base = "/proc/self/fd"
        return try FileManager.default.contentsOfDirectory(atPath: base).map { "\(base)/\($0)" }
            .filter { link in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: link)
                return target.map {
                    $0.hasPrefix(folder.url.path + "/") && $0.hasSuffix("(deleted)")
                } ?? false
            }
    }

    @Test func `spooled data has no name, no plaintext and no other reader`() async throws {
        let (fixture, store) = try make()
        let (source, feed) = AsyncStream<Data>.makeStream()
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let slow = AsyncStream<Data> {
            ask.yield()
            return await source.first { _ in true }
        }
        var data = Data()
        while data.count < 3 * Self.chunk { data.append(Self.canary) }
        let task = Task { [data] in
            try await store.writeBlob("data", in: "t", row: 1, byteCount: data.count, from: slow)
        }
        var questions = asked.makeAsyncIterator()
        await questions.next()
        feed.yield(data)
        await questions.next()
        let files = try unnamed(in: fixture.folder)
        #expect(files.count == 1)
        for file in files {
            let written = try Data(contentsOf: URL(filePath: file))
            #expect(written.count >= Self.chunk)
            #expect(written.range(of: Self.canary.prefix(12)) == nil)
            var found = stat()
            #expect(stat(file, &found) == 0)
            #expect(found.st_mode & 0o777 == 0o600)
            #expect(found.st_nlink == 0)
        }
        try expectNothingLeft(fixture)
        feed.finish()
        try await task.value
        #expect(try await stored(store) == data)
        #expect(try unnamed(in: fixture.folder) == [])
    }
    #endif

    private func spoolFile(
        _ folder: TemporaryFolder, hasUnnamed: Bool = true, chunkCount: UInt8 = 3
    ) throws -> SpoolFile {
        let location = try FileLocation(folder.path())
        let file = try SpoolFile(beside: location, hasUnnamed: hasUnnamed)
        for number in 0..<chunkCount {
            try file.append(Data(repeating: number, count: Self.chunk))
        }
        return file
    }

    @Test(arguments: [true, false])
    func `a file that loses its name at once works as one that never had a name`(
        hasUnnamed: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let file = try spoolFile(folder, hasUnnamed: hasUnnamed)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [])
        #expect(file.chunkCount == 3)
        for number in [2, 0, 1] {
            let expected = Data(repeating: UInt8(number), count: Self.chunk)
            #expect(try file.chunk(number) == expected)
        }
    }

    #if os(Linux)
    @Test func `a discarded file gives its room back while somebody still holds it`() throws {
        let folder = try TemporaryFolder()
        let file = try spoolFile(folder)
        #expect(try unnamed(in: folder).count == 1)
        file.discard()
        #expect(try unnamed(in: folder) == [])
        expect(.misuse) { try file.chunk(0) }
        expect(.misuse) { try file.append(Data(count: Self.chunk)) }
        file.discard()
    }
    #endif

    @Test func `a chunk that was changed, cut or moved is not read back`() throws {
        let folder = try TemporaryFolder()
        let file = try spoolFile(folder)
        let sealedByteCount = Self.chunk + ChunkSealer.overhead
        func bytes(_ number: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: sealedByteCount)
            #expect(
                pread(file.descriptor, &bytes, bytes.count, off_t(number * sealedByteCount))
                    == sealedByteCount)
            return bytes
        }
        func put(_ bytes: [UInt8], _ number: Int) {
            #expect(
                pwrite(file.descriptor, bytes, bytes.count, off_t(number * sealedByteCount))
                    == bytes.count)
        }
        let sealed = [bytes(0), bytes(1)]
        for offset in [0, Self.chunk / 2, Self.chunk, sealedByteCount - 1] {
            var changed = sealed[0]
            changed[offset] ^= 1
            put(changed, 0)
            expect(.io) { try file.chunk(0) }
        }
        put(sealed[1], 0)
        expect(.io) { try file.chunk(0) }
        put(sealed[0], 0)
        #expect(try file.chunk(0).first == 0)
        #expect(ftruncate(file.descriptor, off_t(sealedByteCount + 100)) == 0)
        expect(.io) { try file.chunk(1) }
        expect(.io) { try file.chunk(2) }
        expect(.io) { try file.chunk(3) }
    }

    // MARK: Half-way

    private struct Lost: Error {}

    @Test(arguments: [1000, 3 * chunk], journalModes)
    func `a source that fails at its end leaves nothing`(
        byteCount: Int, mode: Configuration.JournalMode
    ) async throws {
        let (fixture, store) = try make(mode)
        await #expect(throws: Lost.self) {
            let source = AsyncThrowingStream<Data, any Error> { continuation in
                continuation.yield(BlobFixture.bytes(byteCount))
                continuation.finish(throwing: Lost())
            }
            try await store.writeBlob("data", in: "t", row: 1, byteCount: byteCount, from: source)
        }
        #expect(try await stored(store) == Data([1, 2, 3]))
        try expectNothingLeft(fixture)
    }

    @Test(arguments: [1000, 3 * chunk], journalModes)
    func `a task that is cancelled half-way leaves nothing`(
        byteCount: Int, mode: Configuration.JournalMode
    ) async throws {
        let (fixture, store) = try make(mode)
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let (never, end) = AsyncStream<Data>.makeStream()
        defer { end.finish() }
        let isFirst = Shared(true)
        let source = AsyncStream<Data> {
            ask.yield()
            guard !isFirst.value else {
                isFirst.value = false
                return BlobFixture.bytes(byteCount)
            }
            return await never.first { _ in true }
        }
        let task = Task {
            try await store.writeBlob(
                "data", in: "t", row: 1, byteCount: byteCount + 1, from: source)
        }
        var questions = asked.makeAsyncIterator()
        await questions.next()
        await questions.next()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await stored(store) == Data([1, 2, 3]))
        try expectNothingLeft(fixture)
    }

    @Test(arguments: journalModes)
    func `a stream whose row is deleted before its end reports .notFound`(
        mode: Configuration.JournalMode
    ) async throws {
        let (fixture, store) = try make(mode)
        let source = AsyncThrowingStream<Data, any Error> {
            try await store.write { tx in try tx.execute("DELETE FROM t") } == 1
                ? Data([1]) : nil
        }
        await expect(.notFound) {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 1, from: source)
        }
        try expectNothingLeft(fixture)
    }

    @Test(.onSmallDisk)
    func `a disk that is full loses nothing and keeps nothing`() throws {
        let folder = try TemporaryFolder()
        let lines = try SmallDisk.run(folder, byteCount: 2 << 20) {
            ["spool", "\($0)/store.db", "1", "\(8 << 20)"]
        }
        #expect(lines == ["full", "3 bytes", "files store.db store.db-shm store.db-wal", "wrote"])
    }
}
