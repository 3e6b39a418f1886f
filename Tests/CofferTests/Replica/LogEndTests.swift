import Testing

@testable import Coffer
@testable import CofferReplica

@Suite struct LogEndTests {
    @Test func `the last of a run is found, with few questions`() async throws {
        for last in [0, 1, 2, 3, 7, 8, 9, 63, 64, 1000, 1023, 1024, 123_457] as [UInt64] {
            var count = 0
            let found = try await LogEnd.last { number in
                count += 1
                return number <= last
            }
            #expect(found == last)
            #expect(count <= 2 * (64 - last.leadingZeroBitCount) + 2)
        }
    }

    @Test func `a record after a hole is told, and one that was just written is not`() async throws
    {
        let remote = MemoryRemote()
        let end = LogEnd(access: .testing(remote))
        let name = { (number: UInt64) in Slot(term: 1, number: number).name }
        for number in 0...9 as ClosedRange<UInt64> { remote.objects[name(number)] = [1] }
        try await end.requireNothing(after: Slot(term: 1, number: 9))
        // Another process has gone on since the end was found.
        try await end.requireNothing(after: Slot(term: 1, number: 5))
        // Other programs leave files of their own.
        remote.objects["log/thumbs.db"] = [1]
        remote.objects["log/.x/y"] = [1]
        try await end.requireNothing(after: Slot(term: 1, number: 9))
        remote.objects[name(6)] = nil
        let error = await #expect(throws: StoreError.self) {
            try await end.requireNothing(after: Slot(term: 1, number: 5))
        }
        #expect(error?.code == .remoteDamaged)
        #expect(error?.message.contains("none at \(name(6))") == true)
    }

    @Test func `a remote that has every object is refused`() async throws {
        await expect(.remoteDamaged) { _ = try await LogEnd.last { _ in true } }
    }
}
