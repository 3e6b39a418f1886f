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

    private let remote = MemoryRemote()

    private func find() async throws -> LogEnd.Found? {
        try await LogEnd(access: .testing(remote)).find()
    }

    private func slot(_ term: UInt64, _ number: UInt64) -> Slot { Slot(term: term, number: number) }

    @Test func `the end is found behind each record that is lost`() async throws {
        #expect(try await find() == nil)
        // Other programs leave files of their own.
        remote.objects = ["log/thumbs.db": [1], "log/.x/y": [1]]
        #expect(try await find() == nil)
        // A name that no owner gives.
        remote.objects[Slot(term: .max, number: .max).name] = [1]
        #expect(try await find() == nil)
        let slots =
            (0...9).map { slot(1, $0) } + [slot(2, 0), slot(3, 0)]
            + (1...1030).map { slot(3, $0) }
        for slot in slots { remote.objects[slot.name] = [1] }
        let last = slot(3, 1030)
        #expect(try await find() == LogEnd.Found(last: last, hole: nil))
        var holeCount = 0
        for lost in slots.prefix(60) + slots.suffix(10).dropLast() {
            remote.objects[lost.name] = nil
            // The search does not ask for each.
            let found = try #require(try await find())
            #expect(found.last == last, "\(lost) is lost")
            if let hole = found.hole {
                #expect(hole.before ?? .first <= lost)
                holeCount += 1
            }
            remote.objects[lost.name] = [1]
        }
        #expect(holeCount > 5)
        // All that is before the last one.
        for slot in slots.dropLast() { remote.objects[slot.name] = nil }
        let hole = LogEnd.Hole(before: nil)
        #expect(try await find() == LogEnd.Found(last: last, hole: hole))
    }

    @Test func `a remote that has every object is refused`() async throws {
        await expect(.remoteDamaged) { _ = try await LogEnd.last { _ in true } }
    }
}
