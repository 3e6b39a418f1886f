import Coffer
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A remote whose answers may be late or lost.
///
/// Asks again until an answer says what became of an object, and remembers the remote's time.
final class RemoteAccess: Sendable {
    let remote: any Remote
    let clock: RemoteClock
    private let patience: Patience
    private let limit: Mutex<Duration?>

    /// How long to ask again.
    struct Patience: Sendable {
        /// The pause after the first failure; each later one is twice as long.
        var firstPause = Duration.milliseconds(200)
        var longestPause = Duration.seconds(30)
        /// From when on a failure is thrown; `nil` to ask for ever.
        var limit: Duration?
        var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
        /// Called with each failure, before the pause.
        var failed: @Sendable (any Error) -> Void = { _ in }
    }

    /// How long a call asks again while somebody waits for a replication or a restore to begin.
    static let beginningLimit = Duration.seconds(60)

    init(
        _ remote: any Remote, patience: Patience = Patience(), clock: RemoteClock = RemoteClock()
    ) {
        (self.remote, self.patience, self.clock) = (remote, patience, clock)
        limit = Mutex(patience.limit)
    }

    /// For work that is tried again later as a whole: asks for some minutes, and tells nobody of
    /// what passes.
    var forMaintenance: RemoteAccess {
        var patience = patience
        (patience.limit, patience.failed) = (.seconds(600), { _ in })
        return RemoteAccess(remote, patience: patience, clock: clock)
    }

    /// Asks for an hour from now on, if there is a limit.
    func lengthenLimit() { limit.withLock { $0 = $0.map { max($0, .seconds(3600)) } } }

    /// Removes the limit: each later call asks until the remote answers.
    func endLimit() { limit.withLock { $0 = nil } }

    /// The newest time that the remote has told; `nil` if it never has.
    var time: Date? { clock.time }

    /// What the remote's clock shows now, as far as this machine can tell.
    var estimatedTime: Date? { clock.estimate }

    /// The most bytes that an object of a replica has.
    static let byteCountMax = (8 << 20) + (64 << 10)

    /// Creates an object, whatever answers are lost.
    ///
    /// - Returns: `.created` if the object has these bytes, even if an earlier try has made it.
    ///   `.exists` if it has others.
    /// - Throws: `CancellationError`; errors of the remote that asking again does not cure.
    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteCreation {
        try await asking {
            let answer = try await remote.create(name, bytes)
            clock.note(answer.time)
            guard answer.value == .exists else { return .created }
            // An earlier try may have made it, and its answer was lost.
            let found = try await remote.read(name, 0..<bytes.count + 1)
            clock.note(found.time)
            guard let object = found.value else {
                throw StoreError(
                    .remoteUnfit, "\(remote.place) says that \(name) exists, and does not have it")
            }
            return object == bytes ? .created : .exists
        }
    }

    /// Creates an object twice: the second time must be refused, so that a remote which ignores
    /// conditions is noticed.
    ///
    /// - Throws: `.remoteUnfit` for such a remote; as `create`.
    func createProving(_ name: String, _ bytes: [UInt8]) async throws -> RemoteCreation {
        guard try await create(name, bytes) == .created else { return .exists }
        let second = try await asking { try await remote.create(name, bytes) }
        clock.note(second.time)
        guard second.value == .exists else {
            throw StoreError(
                .remoteUnfit, "\(remote.place) let an object take a name that was taken",
                hint: "Choose a service that refuses to create an object twice.")
        }
        return .created
    }

    /// The bytes of an object, or a part; `nil` if it does not exist.
    func read(_ name: String, _ range: Range<Int>? = nil) async throws -> [UInt8]? {
        let part = range ?? 0..<Self.byteCountMax + 1
        let answer = try await asking { try await remote.read(name, part) }
        clock.note(answer.time)
        guard let bytes = answer.value else { return nil }
        guard bytes.count < part.count || range != nil else {
            throw StoreError(
                .remoteDamaged, "\(name) of \(remote.place) is larger than any object of a replica")
        }
        return bytes
    }

    func exists(_ name: String) async throws -> Bool { try await read(name, 0..<1) != nil }

    /// Some names, as the remote lists them: only a hint.
    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        try await asking { try await remote.names(withPrefix: prefix, after: name) }
    }

    func delete(_ name: String) async throws {
        try await asking { try await remote.delete(name) }
    }

    private func asking<T>(_ work: () async throws -> T) async throws -> T {
        var pause = patience.firstPause
        var waited = Duration.zero
        var firstFailure: ContinuousClock.Instant?
        while true {
            do {
                return try await work()
            } catch {
                guard Self.mayPass(error) else { throw error }
                patience.failed(error)
                // A request that has timed out is tried once more, however long it took.
                let elapsed = .now - (firstFailure ?? .now)
                firstFailure = firstFailure ?? .now
                if let limit = limit.withLock(\.self), max(waited, elapsed) + pause > limit {
                    throw error
                }
                try await patience.sleep(pause)
                waited += pause
                pause = min(pause * 2, patience.longestPause)
            }
        }
    }

    /// Whether the same call may succeed later.
    private static func mayPass(_ error: any Error) -> Bool {
        if error is CancellationError { return false }
        guard let error = error as? StoreError else { return true }
        return [.remoteUnavailable, .io, .full, .busy, .tooManyFiles].contains(error.code)
    }
}
