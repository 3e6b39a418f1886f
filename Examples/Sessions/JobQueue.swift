import Coffer
import Foundation

/// Payments that several processes book, any of which may die at any time.
///
/// - A job is in `waiting`, then in `running`, and leaves that when it is booked. Each step is one
///   transaction, so a job is always in one place.
/// - A lease, in a bucket of its own, says who works on a job. Leases expire, and jobs must not: an
///   expired entry is gone, and a job in it would be lost.
/// - `finish` books the payment and removes the job in one transaction, if the lease is still the
///   caller's. So each payment is booked exactly once.
///
/// The work between `claim` and `finish` is done at least once: a worker may die before it
/// finishes, or be slower than its lease. An effect outside of the store, such as a mail, can
/// happen twice. Send the job's number with it, so that the receiver recognizes a repetition.
///
/// Short work that changes only the store needs no lease: do it in the `write` that pops the job.
struct JobQueue {
    struct Payment: Codable {
        var account: String
        var cents: Int
    }

    /// A job that its owner may finish while the lease lasts.
    struct Claim {
        let number: Int
        let payment: Payment
        /// Tells this claim from each other one of the job, also by the same process.
        let ticket: UUID
    }

    private let store: Store
    private let waiting = Bucket<Int, Payment>("waiting")
    private let running = Bucket<Int, Payment>("running")
    private let leases = Bucket<Int, UUID>("leases", lifetime: .seconds(30))
    private let balances = Bucket<String, Int>("balances")
    private let counters = Bucket<String, Int>("counters")

    init(path: String, key: borrowing StoreKey, clock: HandClock) throws {
        store = try Store(path: path, key: key, configuration: clock.configuration)
    }

    func close() throws { try store.close() }

    /// Adds jobs, in the order in which workers get them.
    func add(_ payments: [Payment]) throws {
        try store.write { tx in
            for payment in payments {
                // Numbers grow, also across processes. Dates would follow a clock that is set back.
                let number = try tx.increment("jobs", in: counters)
                try tx.set(payment, for: number, in: waiting)
            }
        }
    }

    /// Takes the next job, or one whose worker has let its lease expire; `nil` if there is none.
    func claim() throws -> Claim? {
        try store.write { tx in
            guard let job = try tx.popFirst(in: waiting) ?? abandoned(&tx) else { return nil }
            let claim = Claim(number: job.key, payment: job.value, ticket: UUID())
            try tx.set(job.value, for: job.key, in: running)
            try tx.set(claim.ticket, for: job.key, in: leases)
            try tx.increment("claims", in: counters)
            return claim
        }
    }

    /// `running` has few jobs: one for each worker, dead or alive.
    private func abandoned(
        _ tx: inout WriteTransaction
    ) throws -> BucketEntry<Int, Payment>? {
        for job in try tx.entries(in: running) where try !tx.contains(job.key, in: leases) {
            return job
        }
        return nil
    }

    /// Books the payment, unless the lease has expired.
    ///
    /// - Returns: Whether it did. If not, the job is another worker's, or waits for one.
    func finish(_ claim: Claim) throws -> Bool {
        try store.write { tx in
            guard try tx.get(claim.number, in: leases) == claim.ticket else { return false }
            try tx.increment(claim.payment.account, by: claim.payment.cents, in: balances)
            try tx.remove(claim.number, in: running)
            try tx.remove(claim.number, in: leases)
            return true
        }
    }

    /// The jobs that are not booked, the claims so far, and the sums booked for each account.
    func state() throws -> (openCount: Int, claimCount: Int, balances: [String: Int]) {
        try store.read { tx in
            let openCount = try tx.count(in: waiting) + tx.count(in: running)
            let booked = try tx.entries(in: balances).map { ($0.key, $0.value) }
            return (
                openCount, try tx.get("claims", default: 0, in: counters),
                Dictionary(uniqueKeysWithValues: booked)
            )
        }
    }
}
