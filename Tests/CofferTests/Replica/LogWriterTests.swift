import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

@Suite struct LogWriterTests {
    private let remote = MemoryRemote()
    private let keys = ReplicaKeys.testing()
    private var access: RemoteAccess { .testing(remote) }
    private var reader: LogReader { LogReader(access: access, keys: keys) }

    private func owner(_ name: String = "a") -> LogWriter.Owner {
        LogWriter.Owner(name: name, interval: .seconds(1))
    }

    private func writer(_ name: String = "a") async throws -> LogWriter {
        try #require(
            try await LogWriter.begin(
                after: reader.end(), .numbered(0), as: owner(name), access, keys))
    }

    @Test func `records follow each other, each with the hash of the one before`() async throws {
        let writer = try await writer()
        for number in 1...5 as ClosedRange<UInt32> {
            let slot = try await writer.append(.segment, .numbered(number))
            #expect(slot.slot == Slot(term: 1, number: UInt64(number)))
        }
        var hash = RecordHeader.nothingBefore
        for number in 0...5 as ClosedRange<UInt64> {
            let found = try await reader.existing(Slot(term: 1, number: number))
            #expect(found.header.previous == hash)
            #expect(found.header.kind == (number == 0 ? .begin : .segment))
            hash = found.sealed.hash
        }
        let end = try #require(try await reader.end())
        #expect(end.owner == "a" && end.interval == .seconds(1))
        #expect(end.last.record.pages == ReplicaRecord.numbered(5).pages)
    }

    @Test func `the owner of before is fenced, and stays so`() async throws {
        let first = try await writer("a")
        _ = try await first.append(.segment, .numbered(1))
        let second = try await writer("b")
        for _ in 0..<2 {
            let error = await #expect(throws: StoreError.self) {
                try await first.append(.segment, .numbered(2))
            }
            #expect(error?.code == .fenced)
        }
        #expect(await first.isFenced)
        let slot = try await second.append(.segment, .numbered(3))
        #expect(slot.slot == Slot(term: 2, number: 1))
        let takeover = try await reader.existing(Slot(term: 1, number: 2))
        #expect(takeover.header.kind == .takeover && takeover.record.note.owner == "b")
        let begin = try await reader.existing(Slot(term: 2, number: 0))
        #expect(begin.header.previous == takeover.sealed.hash)
    }

    @Test func `of two that take over at once, one does`() async throws {
        _ = try await writer("a")
        let end = try await reader.end()
        let one = try await LogWriter.begin(after: end, .numbered(0), as: owner("b"), access, keys)
        let other = try await LogWriter.begin(
            after: end, .numbered(0), as: owner("c"), access, keys)
        #expect(one != nil && other == nil)
        // One that died after its takeover may lose the next term.
        remote.objects[Slot(term: 2, number: 0).name] = nil
        let left = try #require(try await reader.end())
        #expect(left.owner == "b" && left.last.header.kind == .takeover)
        #expect(try await writer("c").last == Slot(term: 2, number: 0))
    }

    @Test func `a mark stands at each multiple of 1 024, and the end is found from it`()
        async throws
    {
        let writer = try await writer()
        for number in 1...2060 as ClosedRange<UInt32> {
            _ = try await writer.append(.segment, .numbered(number))
        }
        #expect(try await reader.existing(Slot(term: 1, number: 2048)).header.kind == .mark)
        // All that may be deleted.
        for number in 1..<2048 as Range<UInt64> where number != 1024 {
            try await remote.delete(Slot(term: 1, number: number).name)
        }
        let before = remote.readCount
        let end = try #require(try await reader.end())
        #expect(end.last.slot == Slot(term: 1, number: 2062))
        #expect(end.last.record.pages == ReplicaRecord.numbered(2060).pages)
        #expect(remote.readCount - before < 40)
    }

    @Test func `an owner that slept looks for the end from the marks`() async throws {
        let asleep = try await writer("a")
        _ = try await asleep.append(.segment, .numbered(1))
        remote.advance(13 * 3600)
        // Nobody has taken over.
        _ = try await asleep.append(.segment, .numbered(2))
        let other = try await writer("b")
        for number in 1...1100 as ClosedRange<UInt32> {
            _ = try await other.append(.segment, .numbered(number))
        }
        // Its takeover and all before have gone, as no retention would let them.
        try await remote.delete(Slot(term: 1, number: 3).name)
        remote.advance(25 * 3600)
        let error = await #expect(throws: StoreError.self) {
            try await asleep.append(.segment, .numbered(3))
        }
        #expect(error?.code == .fenced)
    }

    @Test func `answers that are lost change nothing`() async throws {
        let remote = MemoryRemote(.init(failurePercentage: 40), seed: testSeed())
        let access = RemoteAccess.testing(remote)
        let writer = try #require(
            try await LogWriter.begin(after: nil, .numbered(0), as: owner(), access, keys))
        for number in 1...200 as ClosedRange<UInt32> {
            _ = try await writer.append(.segment, .numbered(number))
        }
        #expect(await writer.last == Slot(term: 1, number: 200))
        #expect(remote.objects.count == 201)
    }

    @Test func `a service that overwrites is noticed at the takeover`() async throws {
        let remote = MemoryRemote(.init(overwritePercentage: 100))
        let error = await #expect(throws: StoreError.self) {
            try await LogWriter.begin(
                after: nil, .numbered(0), as: owner(), .testing(remote), keys)
        }
        #expect(error?.code == .remoteUnfit)
    }

    @Test func `a record whose answer was an error is not taken for that of another owner`()
        async throws
    {
        let writer = try await writer()
        remote.denyAfterNextCreate()
        await expect(.remoteDenied) { _ = try await writer.append(.segment, .numbered(1)) }
        #expect(remote.objects[Slot(term: 1, number: 1).name] != nil)
        let position = try await writer.append(.segment, .numbered(2))
        #expect(position.slot == Slot(term: 1, number: 2))
        #expect(try await reader.existing(Slot(term: 1, number: 1)).record.pages.count == 1)
    }

    @Test func `an owner does not go on after a record that the remote has lost`() async throws {
        let writer = try await writer()
        _ = try await writer.append(.segment, .numbered(1))
        let objects = remote.objects
        remote.objects[Slot(term: 1, number: 1).name] = nil
        await expect(.remoteDamaged) { _ = try await writer.append(.segment, .numbered(2)) }
        #expect(remote.objects[Slot(term: 1, number: 2).name] == nil)
        remote.objects = objects
        _ = try await writer.append(.segment, .numbered(2))
    }
}
