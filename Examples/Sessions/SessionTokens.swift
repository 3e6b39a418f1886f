import Coffer
import Foundation
import Report

/// A signed-in user.
struct Session: Codable, Equatable {
    var user: String
    var roles: [String]
}

/// Sessions by their tokens. A session ends thirty minutes after its last use.
struct SessionTokens: Sendable {
    static let bucket = Bucket<UUID, Session>("sessions", lifetime: .seconds(1_800))

    let store: Store

    /// Returns a new token, which is a secret: the store encrypts keys as it encrypts values.
    func signIn(_ session: Session) async throws -> UUID {
        let token = UUID()
        try await store.set(session, for: token, in: Self.bucket)
        return token
    }

    /// The session of a token; `nil` if it has ended. Using a session prolongs it.
    func session(_ token: UUID) async throws -> Session? {
        let (session, lifetime) = try await store.read { tx in
            (
                try tx.get(token, in: Self.bucket),
                try tx.remainingLifetime(of: token, in: Self.bucket)
            )
        }
        // Each touch is a durable write. One for each half of the lifetime is enough.
        if case .limited(let rest) = lifetime, rest < .seconds(900) {
            // The user may have signed out since the read. `touch` brings nothing back.
            guard try await store.touch(token, in: Self.bucket) else { return nil }
        }
        return session
    }

    /// Ends a session now. Expiry alone does not revoke it: a clock can be set back.
    func signOut(_ token: UUID) async throws {
        try await store.remove(token, in: Self.bucket)
    }
}

extension Sessions {
    static func tryTokens(
        _ store: Store, _ clock: HandClock, _ report: inout Report
    ) async throws {
        let tokens = SessionTokens(store: store)
        let ada = Session(user: "ada", roles: ["admin"])
        let token = try await tokens.signIn(ada)

        clock.advance(minutes: 10)
        let early = try await tokens.session(token)
        let untouched = try await store.remainingLifetime(of: token, in: SessionTokens.bucket)
        report.check(
            "a use in the first half of a session writes nothing",
            early == ada && untouched == .limited(.seconds(1_200)))

        clock.advance(minutes: 10)
        let late = try await tokens.session(token)
        let touched = try await store.remainingLifetime(of: token, in: SessionTokens.bucket)
        report.check(
            "a use in the second half prolongs it to 30 minutes",
            late == ada && touched == .limited(.seconds(1_800)))

        var isThere = true
        for _ in 1...9 {
            clock.advance(minutes: 20)
            isThere = try await tokens.session(token) == ada && isThere
        }
        report.check("it lives for three hours of a use every 20 minutes", isThere)

        clock.advance(minutes: 30)
        report.check("it ends after 30 idle minutes", try await tokens.session(token) == nil)
        let swept = try await store.sweepExpiredEntries()
        report.check("and a sweep removes it from the file", swept == 1)

        let other = try await tokens.signIn(Session(user: "grace", roles: []))
        try await tokens.signOut(other)
        let isBack = try await store.touch(other, in: SessionTokens.bucket)
        let afterwards = try await tokens.session(other)
        report.check("a touch brings no signed-out session back", !isBack && afterwards == nil)
    }
}
