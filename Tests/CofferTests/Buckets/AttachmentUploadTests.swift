import Foundation
import Testing

@testable import Coffer

/// Uploads that break off, are cancelled, resumed and taken over.
@Suite(.againstHanging, .onOwnThreads) struct AttachmentUploadTests {
    private struct BrokenOff: Error {}
    private static let batch = 16 * Contents.chunkByteCount
    private let fixture: AttachmentFixture
    private var store: Store { fixture.store }
    private var films: AttachmentBucket<String> { fixture.films }

    init() throws { fixture = try AttachmentFixture() }

    private func uploads() throws -> [AttachmentUpload<String>] {
        try store.read { tx in try tx.uploads(in: films) }
    }

    @Test(arguments: [10, batch, 2 * batch + 10])
    func `an upload whose source fails keeps the old attachment and nothing of the new one`(
        byteCount: Int
    ) async throws {
        let old = AttachmentFixture.bytes(10, seed: 1)
        try await store.write { tx in try tx.set(old, for: "a", in: films) }
        let source = AttachmentFixture.source(
            AttachmentFixture.bytes(byteCount), then: BrokenOff())
        await #expect(throws: BrokenOff.self) {
            try await store.set(contentsOf: source, for: "a", in: films)
        }
        #expect(try await fixture.stored("a") == old)
        #expect(try uploads().isEmpty)
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [1, 1])
    }

    @Test(arguments: [10, batch, 2 * batch + 10])
    func `a resumable upload goes on where its source failed`(byteCount: Int) async throws {
        let bytes = AttachmentFixture.bytes(byteCount + 1_000_000)
        let source = AttachmentFixture.source(bytes.prefix(byteCount), then: BrokenOff())
        await #expect(throws: BrokenOff.self) {
            try await store.set(contentsOf: source, for: "a", in: films, isResumable: true)
        }
        #expect(try await store.attachment("a", in: films) == nil)
        let upload = try #require(try uploads().first)
        #expect(upload.key == "a" && upload.byteCount == byteCount)
        let whole = try await store.resume(
            upload, contentsOf: AttachmentFixture.source(bytes.dropFirst(byteCount)), in: films,
            byteCount: bytes.count)
        #expect(whole == AttachmentFixture.information(bytes))
        #expect(try await fixture.stored("a") == bytes)
        #expect(try uploads().isEmpty)
        await expect(.notFound) {
            try await store.resume(
                upload, contentsOf: AttachmentFixture.source(Data()), in: films)
        }
    }

    @Test func `a resumed upload may break off again, and one that was discarded is gone`()
        async throws
    {
        let bytes = AttachmentFixture.bytes(300_000)
        await #expect(throws: BrokenOff.self) {
            try await store.set(
                contentsOf: AttachmentFixture.source(bytes.prefix(1000), then: BrokenOff()),
                for: "a", in: films, isResumable: true)
        }
        let first = try #require(try uploads().first)
        await #expect(throws: BrokenOff.self) {
            try await store.resume(
                first,
                contentsOf: AttachmentFixture.source(bytes[1000..<200_000], then: BrokenOff()),
                in: films)
        }
        // The upload has other bytes by now.
        await expect(.conflict) {
            try await store.resume(first, contentsOf: AttachmentFixture.source(bytes), in: films)
        }
        let second = try #require(try uploads().first)
        #expect(second.byteCount == 200_000)
        #expect(try await store.write { tx in try tx.discard(second) })
        #expect(try await store.write { tx in try !tx.discard(second) })
        #expect(try uploads().isEmpty)
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test func `a source that gives more or fewer bytes than said stores nothing`() async throws {
        for count in [9, 11] {
            await expect(.mismatch) {
                try await store.set(
                    contentsOf: AttachmentFixture.source(Data(count: count)), for: "a",
                    in: films, byteCount: 10)
            }
        }
        await expect(.mismatch) {
            try await store.set(
                contentsOf: AttachmentFixture.source(Data(count: Self.batch + 1), by: 1 << 20),
                for: "a", in: films, byteCount: Self.batch)
        }
        #expect(try await store.attachment("a", in: films) == nil)
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test(arguments: [false, true])
    func `a cancelled upload stores nothing, and keeps its bytes if it may be resumed`(
        isResumable: Bool
    ) async throws {
        let hold = Hold()
        let (store, films) = (store, films)
        let task = Task {
            let count = Shared(0)
            let source = AsyncStream<Data> {
                count.update { $0 += 1 }
                guard count.value > 5 else { return Data(count: 1 << 20) }
                hold.pass()
                // Until the task is cancelled.
                try? await Task.sleep(for: .seconds(600))
                return nil
            }
            try await store.set(
                contentsOf: source, for: "a", in: films, isResumable: isResumable)
        }
        await hold.isEntered()
        #expect(try await store.attachment("a", in: films) == nil)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await store.attachment("a", in: films) == nil)
        #expect(try uploads().map(\.byteCount) == (isResumable ? [5 << 20] : []))
    }

    @Test(arguments: [false, true])
    func `an upload that another one took over cannot add to it`(
        hasBrokenOffAgain: Bool
    ) async throws {
        let hold = Hold()
        let (store, films) = (store, films)
        let (goOn, goesOn) = AsyncStream<Void>.makeStream()
        let first = AttachmentFixture.bytes(Self.batch)
        let task = Task {
            let number = Shared(0)
            let pieces = AsyncStream<Data> {
                number.update { $0 += 1 }
                guard number.value > 1 else { return first }
                hold.pass()
                for await _ in goOn {}
                return number.value == 2 ? Data(repeating: 9, count: 10) : nil
            }
            try await store.set(contentsOf: pieces, for: "a", in: films, isResumable: true)
        }
        await hold.isEntered()
        let upload = try #require(try uploads().first)
        #expect(upload.byteCount == Self.batch)
        let rest = Data([1, 2, 3])
        let resumed = Task {
            try await store.resume(
                upload,
                contentsOf: AttachmentFixture.source(
                    rest, then: hasBrokenOffAgain ? BrokenOff() : nil), in: films)
        }
        _ = await resumed.result
        goesOn.finish()
        #expect(await code(task) == .conflict)
        if hasBrokenOffAgain {
            let again = try #require(try uploads().first)
            #expect(again.byteCount == Self.batch + rest.count)
            try await store.resume(
                again, contentsOf: AttachmentFixture.source(Data()), in: films)
        }
        if !hasBrokenOffAgain {
            #expect(try await resumed.value == AttachmentFixture.information(first + rest))
        }
        let information = try await store.attachment("a", in: films)
        #expect(information == AttachmentFixture.information(first + rest))
        #expect(try await fixture.stored("a") == first + rest)
    }

    @Test func `an upload to which nothing is added for a day is swept`() async throws {
        await #expect(throws: BrokenOff.self) {
            try await store.set(
                contentsOf: AttachmentFixture.source(Data(count: 10), then: BrokenOff()),
                for: "a", in: films, isResumable: true)
        }
        fixture.buckets.clock.advance(by: 24 * 3600 - 1)
        try await store.sweepExpiredEntries()
        let upload = try #require(try uploads().first)
        fixture.buckets.clock.advance(by: 1)
        try await store.sweepExpiredEntries()
        #expect(try uploads().isEmpty)
        #expect(try fixture.rowCounts() == [0, 0])
        await expect(.notFound) {
            try await store.resume(
                upload, contentsOf: AttachmentFixture.source(Data()), in: films)
        }
    }

    @Test func `an upload of a bucket that was renamed or dropped goes with it`() async throws {
        try await store.write { tx in try tx.set(Data(), for: "b", in: films) }
        await #expect(throws: BrokenOff.self) {
            try await store.set(
                contentsOf: AttachmentFixture.source(Data(count: 10), then: BrokenOff()),
                for: "a", in: films, isResumable: true)
        }
        try await store.write { tx in try tx.renameBucket("films", to: "movies") }
        let movies = AttachmentBucket<String>("movies")
        #expect(try uploads().isEmpty)
        #expect(try await store.read { tx in try tx.uploads(in: movies).map(\.byteCount) } == [10])
        try await store.write { tx in try tx.dropBucket("movies") }
        #expect(try await store.read { tx in try tx.uploads(in: movies).isEmpty })
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test func `errors that do not depend on the bytes come before the first one`() async throws {
        try await store.set(1, for: "a", in: Bucket<String, Int>("numbers"))
        let isAsked = Shared(false)
        let source = AsyncStream<Data> {
            isAsked.value = true
            return nil
        }
        let numbers = AttachmentBucket<String>("numbers")
        await expect(.mismatch) {
            try await store.set(contentsOf: source, for: "a", in: numbers)
        }
        await expect(.mismatch) {
            try await store.append(contentsOf: source, to: "a", in: numbers)
        }
        await expect(.misuse) {
            try await store.set(
                contentsOf: source, for: "a", in: AttachmentBucket<String>(""))
        }
        await expect(.mismatch) {
            let dates = AttachmentBucket<Date>("dates")
            let noDate = Date(timeIntervalSince1970: .nan)
            try await store.set(contentsOf: source, for: noDate, in: dates)
        }
        try await store.close()
        let reader = try await Store(
            path: fixture.buckets.folder.path(), key: .numbered(1), mode: .readOnly)
        await expect(.readOnly) {
            try await reader.set(contentsOf: source, for: "a", in: films)
        }
        #expect(!isAsked.value)
    }

    @Test func `a file and a pipe are sources, and a missing file is not found`() async throws {
        let bytes = AttachmentFixture.bytes(Self.batch + 1)
        let path = fixture.buckets.folder.path("film.bin")
        try bytes.write(to: URL(filePath: path))
        let stored = try await store.set(contentsOfFile: path, for: "a", in: films)
        #expect(stored == AttachmentFixture.information(bytes))
        #expect(try await fixture.stored("a") == bytes)
        let pipe = fixture.buckets.folder.path("pipe")
        try #require(mkfifo(pipe, 0o600) == 0)
        let writer = Thread {
            try? FileHandle(forWritingTo: URL(filePath: pipe)).write(contentsOf: Data("piped".utf8))
        }
        writer.start()
        try await store.set(contentsOfFile: pipe, for: "a", in: films)
        #expect(try await fixture.stored("a") == Data("piped".utf8))
        await expect(.notFound) {
            try await store.set(
                contentsOfFile: fixture.buckets.folder.path("none"), for: "a", in: films)
        }
        await expect(.io) {
            try await store.set(
                contentsOfFile: fixture.buckets.folder.url.path, for: "a", in: films)
        }
    }

    @Test(.onSmallDisk)
    func `a disk that is full during an upload keeps the old attachment, and has room again`()
        throws
    {
        let folder = try TemporaryFolder()
        let lines = try SmallDisk.run(folder, byteCount: 16 << 20) {
            ["upload", "\($0)/store.db", "1", "\(40 << 20)"]
        }
        #expect(lines == ["full", "3 bytes", "1 contents, 1 chunks", "wrote"])
    }
}
