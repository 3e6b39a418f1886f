/// The epochs that a file with a keyring may have, the likely ones first.
///
/// The keyring does not always name the right epoch: one of both files may come from a backup, or a
/// crash may have interrupted a rotation. Every data key is derived from the root, so a trial finds
/// the epoch.
struct EpochCandidates: Sequence {
    private let epoch: UInt32
    private let highest: UInt32
    /// The last epoch that is tried.
    private let last: UInt32
    /// The last two days, in hours since 2020. A rotation that has not been recorded mostly took
    /// one of them.
    private let recent: Range<UInt32>

    /// - Parameters:
    ///   - hour: Hours since 2020, because a rotation takes the hour as its epoch.
    ///   - isWhole: Whether epochs are tried that only a wrong clock makes.
    init(of content: KeyringContent, hour: UInt32, isWhole: Bool = false) {
        epoch = content.epoch
        highest = content.highestEpoch
        last =
            isWhole
            ? KeyringContent.maximumEpoch
            : Swift.min(Swift.max(highest, hour) + 64, KeyringContent.maximumEpoch)
        recent = hour == 0 ? 0..<0 : (hour > 48 ? hour - 48 : 1)..<hour + 2
    }

    /// The epochs that a rotation would take now, or would have taken an hour ago.
    var newest: [UInt32] {
        let hour = recent.isEmpty ? 0 : recent.upperBound - 2
        return [highest + 1, hour, hour &- 1].filter { $0 > highest && $0 <= last }
    }

    /// How many epochs there are.
    var count: Int { Int(Swift.max(last, epoch, highest + 1)) }

    /// The hours since 2020-01-01 00:00 UTC, between 0 and 2^20 - 1.
    static func hour(of secondsSince1970: Int64) -> UInt32 {
        let start: Int64 = 1_577_836_800
        return UInt32(Swift.min((Swift.max(secondsSince1970, start) - start) / 3600, 1 << 20 - 1))
    }

    /// Without repetition: the keyring's epoch, the one after the highest, the last hours from the
    /// newest on, and then outwards from the keyring's epoch to 1 and to the last.
    func makeIterator() -> AnyIterator<UInt32> {
        let (next, recent) = (highest + 1, recent)
        let hours = recent.reversed().filter { $0 != epoch && $0 != next }
        var first = ([epoch, next] + hours).makeIterator()
        var distance: UInt32 = 0
        var isUp = true
        return AnyIterator {
            if let epoch = first.next() { return epoch }
            while true {
                isUp.toggle()
                if !isUp { distance += 1 }
                let down = distance < epoch ? epoch - distance : 0
                let up = epoch + distance
                if down == 0, up > last { return nil }
                let other = isUp ? up : down
                if other == next || recent.contains(other) { continue }
                if isUp, up <= last { return up }
                if !isUp, down > 0 { return down }
            }
        }
    }
}
