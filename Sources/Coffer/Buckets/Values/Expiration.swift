#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// When an entry of a bucket ends.
///
/// Each verb compares the entry's time with ``Configuration/currentDate`` of its process, which is
/// the system's clock by default. From that time on the entry does not exist for it, not even later
/// in the same transaction.
///
/// This is wall-clock time. A clock that is set forward ends entries early, and sweeping then
/// removes them. One that is set back lets entries live longer, and brings those back that nobody
/// has swept.
public enum Expiration: Sendable, Hashable {
    /// After the bucket's ``Bucket/lifetime``; never if it has none.
    case standard
    /// Never.
    case never
    /// This long after now. Zero or less ends the entry at once.
    case after(Duration)
    /// At this time. A time in the past ends the entry at once.
    case at(Date)

    /// Microseconds since 1970 at which the entry ends; `nil` for never.
    ///
    /// - Parameters:
    ///   - lifetime: The bucket's.
    ///   - now: Microseconds since 1970.
    /// - Throws: `.mismatch` for a time that is not a number, or beyond 64 bits of microseconds.
    func time(
        lifetime: Duration?, now: () throws(StoreError) -> Int64
    ) throws(StoreError) -> Int64? {
        switch self {
        case .standard: try lifetime.map { (life) throws(StoreError) in try Self.time(life, now()) }
        case .never: nil
        case .after(let duration): try Self.time(duration, now())
        case .at(let date): try date.microseconds()
        }
    }

    private static func time(_ duration: Duration, _ now: Int64) throws(StoreError) -> Int64 {
        let (time, isBeyond) = now.addingReportingOverflow(try duration.wholeMicroseconds())
        guard !isBeyond else { throw beyond }
        return time
    }

    fileprivate static let beyond = StoreError(
        .mismatch, "the time at which an entry ends is out of range",
        hint: "Use .never for an entry that stays.")
}

extension Duration {
    /// Microseconds, without the fraction of one.
    ///
    /// - Throws: `.mismatch` beyond 64 bits.
    func wholeMicroseconds() throws(StoreError) -> Int64 {
        let (seconds, isTooLong) = components.seconds.multipliedReportingOverflow(by: 1_000_000)
        let (count, isBeyond) = seconds.addingReportingOverflow(
            components.attoseconds / 1_000_000_000_000)
        guard !isTooLong, !isBeyond else { throw Expiration.beyond }
        return count
    }
}

extension Date {
    /// Microseconds since 1970, rounded down.
    ///
    /// - Throws: `.mismatch` for a date that is not a number, or beyond 64 bits of microseconds.
    func microseconds() throws(StoreError) -> Int64 {
        let count = (timeIntervalSince1970 * 1e6).rounded(.down)
        guard let exact = Int64(exactly: count) else { throw Expiration.beyond }
        return exact
    }
}

/// How long an entry still lives.
public enum RemainingLifetime: Sendable, Hashable {
    /// It does not expire.
    case unlimited
    /// It expires after this time.
    case limited(Duration)
}
