import ArgumentParser
import Foundation
import Synchronization

/// Standard input as data.
enum StandardInput {
    private static let claimed = Atomic(false)

    /// Whether the verb reads its data from it, so that a command for a secret must not.
    static var isClaimed: Bool { claimed.load(ordering: .relaxed) }

    /// - Parameter data: What the verb reads from standard input; `nil` if it reads nothing.
    /// - Throws: `ValidationError` if the secret also comes from standard input.
    static func claim(_ data: String?, _ secret: SecretOptions) throws {
        guard let data else { return }
        claimed.store(true, ordering: .relaxed)
        guard try secret.named()?.isStandardInput == true else { return }
        throw ValidationError(
            "Standard input cannot be both \(data) and the secret: name another source for one.")
    }

    /// Forgets the claim of a run that has ended.
    static func forgetClaim() {
        claimed.store(false, ordering: .relaxed)
    }

    /// Reads all of it, up to the engine's limit for a value.
    static func bytes() throws -> Data {
        Data(try InputFile("-", apartFrom: "").readAll(maximumCount: 1_000_000_000))
    }

    /// Reads all of it as UTF-8.
    static func text(_ what: String) throws -> String {
        let bytes = try InputFile("-", apartFrom: "").readAll(maximumCount: 64 << 20)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ToolError(.badInput, "the \(what) from standard input is not UTF-8")
        }
        return text
    }
}
