import ArgumentParser
import Coffer

/// When an entry of a bucket ends, as the command line says it.
enum EntryEnd: Equatable {
    case never
    /// Microseconds after now.
    case after(Int64)
    /// Microseconds since 1970.
    case at(Int64)

    /// A length of time: `90s`, `15m`, `2h`, `7d`.
    ///
    /// - Throws: `ValidationError` for any other text, for zero, and beyond 64 bits.
    static func after(_ text: String) throws -> EntryEnd {
        let count = try TimeSpan(text).microseconds
        guard count > 0 else {
            throw ValidationError("A time of nothing is not possible: remove the entry instead.")
        }
        return .after(count)
    }

    /// A time in the form of ISO 8601, with `Z` or a UTC offset.
    ///
    /// - Throws: `ValidationError` for any other text.
    static func at(_ text: String) throws -> EntryEnd {
        guard let time = ExactTime.microseconds(of: text) else {
            throw ValidationError(
                "Write a time as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00, with at most "
                    + "six digits after the second.")
        }
        return .at(time)
    }

    /// Refuses a time that has passed, and one that no text can tell.
    ///
    /// - Throws: `ValidationError`.
    func requireFuture() throws {
        let now = BucketForm.now
        if case .at(let time) = self, time <= now {
            throw ValidationError(
                "That time has passed, and the entry would be gone at once: remove it with coffer "
                    + "kv delete.")
        }
        guard let end = try time(now: now) else { return }
        guard end <= ExactTime.last else { throw Self.tooLate }
    }

    /// Microseconds since 1970; `nil` for never.
    ///
    /// - Throws: `ValidationError` beyond 64 bits.
    func time(now: Int64) throws -> Int64? {
        switch self {
        case .never: return nil
        case .at(let time): return time
        case .after(let count):
            let (end, isBeyond) = now.addingReportingOverflow(count)
            guard !isBeyond else { throw Self.tooLate }
            return end
        }
    }

    private static let tooLate = ValidationError(
        "That is after the year 9999: an entry that stays needs no time.")
}
