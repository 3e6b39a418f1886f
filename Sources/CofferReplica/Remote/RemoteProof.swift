import Coffer

extension Remote {
    /// Checks whether the remote is fit for a replica: of several that create one name, exactly one
    /// must succeed.
    ///
    /// ```swift
    /// try await S3Remote(url, credentials: .instance).prove()
    /// ```
    ///
    /// `Store.replicate` does it by itself. Some objects below `proof/` are made and deleted again.
    ///
    /// - Throws: `StoreError` `.remoteUnfit`, with what was seen; errors of the remote, such as
    ///   `.remoteDenied` and `.remoteUnavailable`; `CancellationError`.
    public func prove() async throws {
        try await RemoteProof(self).run()
    }
}

/// Proves that a remote creates each name once.
///
/// Some services answer that an object was created although one of that name existed, and overwrite
/// it: two owners of a replica would then destroy each other's records without an error.
struct RemoteProof {
    let remote: any Remote
    /// Learns the remote's time.
    private let clock: RemoteClock
    private let folder: String

    /// How many race for one name, and how often.
    private static let racerCount = 8
    private static let roundCount = 8

    init(_ remote: any Remote, clock: RemoteClock = RemoteClock()) {
        (self.remote, self.clock) = (remote, clock)
        folder = "proof/" + [UInt8].random(byteCount: 16).hexDigits
    }

    /// Creates and reads some objects, and deletes them again.
    ///
    /// - Throws: `.remoteUnfit`, with what was seen; errors of the remote.
    func run() async throws {
        let first = Self.bytes(0)
        try await tidyingUp(folder + "/once") { name in
            guard try await remote.read(name).value == nil else {
                throw unfit("it has an object of a random name that nobody has made")
            }
            let answer = try await remote.create(name, first)
            clock.note(answer.time)
            guard answer.value == .created else {
                throw unfit("it says that a random name is taken")
            }
            guard try await remote.create(name, Self.bytes(1)).value == .exists else {
                throw unfit("it let a second object take a name that was taken")
            }
            try await require(name, first)
            guard try await remote.read(name, 3..<7).value == Array(first[3..<7]) else {
                throw unfit("it does not read a part of an object")
            }
        }
        for round in 0..<Self.roundCount {
            try await tidyingUp("\(folder)/race-\(round)") { name in try await race(for: name) }
        }
    }

    private func race(for name: String) async throws {
        let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
            for racer in 0..<Self.racerCount {
                group.addTask {
                    let answer = try await remote.create(name, Self.bytes(racer))
                    return answer.value == .created ? racer : nil
                }
            }
            return try await group.reduce(into: [Int]()) { all, racer in
                if let racer { all.append(racer) }
            }
        }
        guard winners.count == 1, let winner = winners.first else {
            throw unfit(
                "of \(Self.racerCount) that created the same name at once, \(winners.count) were "
                    + "told that they had")
        }
        try await require(name, Self.bytes(winner))
    }

    private func require(_ name: String, _ bytes: [UInt8]) async throws {
        guard try await remote.read(name).value == bytes else {
            throw unfit("an object that was just created reads as something else")
        }
    }

    /// Deletes the object in any case. That it stays changes nothing.
    private func tidyingUp(_ name: String, _ work: (String) async throws -> Void) async throws {
        do {
            try await work(name)
        } catch {
            try? await remote.delete(name)
            throw error
        }
        try? await remote.delete(name)
    }

    private func unfit(_ reason: String) -> StoreError {
        StoreError(
            .remoteUnfit, "\(remote.place) cannot keep a replica: \(reason)",
            hint: "Choose a service that refuses to create an object twice.")
    }

    /// The object of a racer: all have the same size.
    private static func bytes(_ racer: Int) -> [UInt8] {
        Array("racer \(racer) of a proof by Coffer".utf8)
    }
}
