import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Loads the access key of a remote when it is needed, and keeps it while it is valid.
actor S3KeyLoader {
    private let load: @Sendable () async throws -> S3Keys
    private let now: @Sendable () -> Date
    private var current: S3Keys?
    /// When `current` was loaded.
    private var loadedAt = Date.distantPast
    private var loading: Task<S3Keys, any Error>?

    /// How long before its expiration a key is replaced, in seconds.
    private static let margin = 300.0
    /// How long a key is used at least, in seconds, if its source gives only keys that expire soon.
    private static let shortestUse = 10.0

    init(
        now: @escaping @Sendable () -> Date = { Date() },
        _ load: @escaping @Sendable () async throws -> S3Keys
    ) {
        (self.now, self.load) = (now, load)
    }

    /// - Throws: Errors of the source, and `.remoteUnavailable` for any that is no `StoreError`.
    init(_ credentials: S3Credentials, _ transport: any HTTPTransport) throws(StoreError) {
        now = { Date() }
        switch credentials.source {
        case .keys(let keys):
            let keys = try keys.get()
            load = { keys }
        case .file(let path, let profile):
            load = { try await blockingWork { try CredentialFile.keys(path, profile: profile) } }
        case .command(let words):
            guard words.first?.isEmpty == false else {
                throw StoreError(.misuse, "the command for credentials has no words")
            }
            load = { try await blockingWork { try CredentialCommand.keys(words) } }
        case .instance:
            load = { try await InstanceCredentials(transport: transport).keys() }
        }
    }

    /// The access key for the next request.
    ///
    /// - Parameter refused: The key that the service has just called invalid; another one is loaded
    ///   then, unless that has happened already.
    func keys(insteadOf refused: S3Keys? = nil) async throws -> S3Keys {
        if let current, current !== refused, !isDue(current) { return current }
        // All that wait share one loading, which no single one of them cancels.
        let task = loading ?? Task { [load] in try await load() }
        loading = task
        do {
            let keys = try await task.value
            if loading == task { (loading, current, loadedAt) = (nil, keys, now()) }
            return keys
        } catch {
            if loading == task { loading = nil }
            if let current, current !== refused, current.expiration.map({ $0 > now() }) != false {
                return current
            }
            throw error
        }
    }

    private func isDue(_ keys: S3Keys) -> Bool {
        guard let expiration = keys.expiration, now() >= expiration - Self.margin else {
            return false
        }
        return now() >= min(expiration, loadedAt + Self.shortestUse)
    }
}
