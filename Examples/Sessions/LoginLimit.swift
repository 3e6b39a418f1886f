import Coffer
import Report

/// Locks an address out after five failed logins, until fifteen minutes after the last of them.
///
/// An attempt is counted before its password is checked. Counting failures afterwards would let all
/// attempts through that come at once, and a crash in between would forget them.
struct LoginLimit: Sendable {
    private static let maximumCount = 5
    private static let counts = Bucket<String, Int>("logins", lifetime: .seconds(900))

    let store: Store

    /// Counts an attempt; `false` for an address that is locked out.
    ///
    /// `increment` would not do: it counts without a limit, and keeps the time of expiry.
    /// `compareExchange` stores nothing while an address is locked out, so that further attempts
    /// do not prolong the lock.
    func admit(_ address: String) async throws -> Bool {
        var seen = try await store.get(address, in: Self.counts)
        while (seen ?? 0) < Self.maximumCount {
            let (isCounted, original) = try await store.compareExchange(
                address, expected: seen, desired: (seen ?? 0) + 1, in: Self.counts)
            if isCounted { return true }
            // Another attempt came first, maybe in another process: try again from its count.
            seen = original
        }
        return false
    }

    /// Forgets the attempts of an address whose password was right.
    func succeeded(_ address: String) async throws {
        try await store.remove(address, in: Self.counts)
    }
}

extension Sessions {
    static func tryLogins(
        _ store: Store, _ clock: HandClock, _ report: inout Report
    ) async throws {
        let limit = LoginLimit(store: store)
        let attacker = "203.0.113.7"
        let admitted = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 1...64 { group.addTask { try await limit.admit(attacker) } }
            return try await group.reduce(0) { count, isAdmitted in count + (isAdmitted ? 1 : 0) }
        }
        report.check("5 of 64 logins at once are admitted", admitted == 5)

        var isAdmitted = true
        for _ in 1...6 {
            isAdmitted = try await limit.admit("198.51.100.2") && isAdmitted
            try await limit.succeeded("198.51.100.2")
        }
        report.check("right passwords never lock an address out", isAdmitted)

        clock.advance(minutes: 14)
        let isEarly = try await limit.admit(attacker)
        clock.advance(minutes: 1)
        let isFree = try await limit.admit(attacker)
        report.check("attempts do not prolong the 15 minutes of a lock", !isEarly && isFree)
    }
}
