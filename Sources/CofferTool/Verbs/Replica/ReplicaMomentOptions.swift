import ArgumentParser
import CofferReplica
import Foundation

/// Which commit of a replica is meant.
struct ReplicaMomentOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Of a replica: the last commit that was sent up to this time, such as "
                + "2026-11-28T12:00:00Z or 2026-11-28T13:00:00+01:00.", valueName: "time"),
        transform: Self.time)
    var at: Date?

    @Option(
        help: ArgumentHelp(
            "Of a replica: the commit at this position.", valueName: "position"),
        transform: Self.position)
    var position: ReplicaPosition?

    @Option(
        help: ArgumentHelp(
            "Of a replica: refuse it unless it has this position, which was kept elsewhere.",
            valueName: "position"),
        transform: Self.position)
    var atLeast: ReplicaPosition?

    func validate() throws {
        guard at == nil || position == nil else {
            throw ValidationError("Name a time or a position, not both.")
        }
    }

    var isEmpty: Bool { at == nil && position == nil && atLeast == nil }

    var moment: ReplicaMoment {
        position.map { .position($0) } ?? at.map { .time($0) } ?? .newest
    }

    /// Warns if the remote itself could have made the replica.
    ///
    /// Anybody can seal a keyring to the public key of a recipient. Some services of external slots
    /// wrap a secret for anybody too.
    func warn(of secret: SecretOptions) throws {
        guard position == nil, atLeast == nil else { return }
        switch try secret.source().form {
        case .identity, .external:
            Terminal.warn(
                "this credential does not prove who made the replica: name a position that you "
                    + "have kept elsewhere with --at-least, or use another credential")
        default: break
        }
    }

    static func position(_ text: String) throws -> ReplicaPosition {
        guard let position = ReplicaPosition(text) else {
            throw ValidationError(
                "Write a position as coffer prints it, such as 3/1a2b-0f3c5d7e8a9b0c1d.")
        }
        return position
    }

    private static func time(_ text: String) throws -> Date {
        do {
            // The whole second: lists show times without their fractions.
            return try Date(text, strategy: .iso8601) + 0.999
        } catch {
            throw ValidationError(
                "Write a time with its zone, such as 2026-11-28T12:00:00Z or "
                    + "2026-11-28T13:00:00+01:00.")
        }
    }
}
