import Testing

@testable import Coffer

/// The epochs that are tried for a file, in their order.
@Suite struct EpochCandidatesTests {
    private func candidates(
        _ epoch: UInt32, highest: UInt32, hour: UInt32 = 0, isWhole: Bool = false
    ) throws -> [UInt32] {
        var content = KeyringContent(
            new: .random(), id: .random(byteCount: 16), profile: .portable, state: .isInUse, now: 0)
        content.epoch = epoch
        content.highestEpoch = highest
        return Array(EpochCandidates(of: content, hour: hour, isWhole: isWhole))
    }

    @Test func `the keyring's epoch comes first, then the next one, then outwards`() throws {
        let tried = try candidates(3, highest: 9)
        #expect(tried.prefix(8) == [3, 10, 2, 4, 1, 5, 6, 7])
    }

    @Test func `the last hours come before the epochs near that of the keyring`() throws {
        let tried = try candidates(1, highest: 1, hour: 60_000)
        #expect(tried.prefix(4) == [1, 2, 60_001, 60_000])
        #expect(tried.firstIndex(of: 59_952) == 51)
        #expect(tried[52] == 3)
    }

    @Test(arguments: [
        (1, 1, 0), (1, 1, 2), (1, 1, 48), (59_990, 60_000, 60_000), (3, 9, 0),
        (60_000, 60_010, 60_500), (7, 7, 300),
    ])
    func `each epoch to the last is tried once`(
        epoch: UInt32, highest: UInt32, hour: UInt32
    ) throws {
        let tried = try candidates(epoch, highest: highest, hour: hour)
        #expect(tried.sorted() == Array(1...max(highest, hour) + 64))
    }

    @Test func `a search of everything ends beyond every clock`() throws {
        #expect(try candidates(1, highest: 1, isWhole: true).max() == 1_114_111)
    }

    @Test func `an hour counts from 2020 on, whatever the clock says`() {
        #expect(EpochCandidates.hour(of: 1_577_836_800) == 0)
        #expect(EpochCandidates.hour(of: 1_577_836_800 + 7199) == 1)
        #expect(EpochCandidates.hour(of: 0) == 0)
        #expect(EpochCandidates.hour(of: .max) == 1 << 20 - 1)
        #expect(EpochCandidates.hour(of: .min) == 0)
    }
}
