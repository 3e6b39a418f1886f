import Coffer
import Foundation

/// One task and its solution.
struct Recipe: Sendable {
    let name: String
    let task: String
    let cook: @Sendable (Kitchen) async throws -> Void

    init(
        _ name: String, _ task: String, _ cook: @escaping @Sendable (Kitchen) async throws -> Void
    ) {
        (self.name, self.task, self.cook) = (name, task, cook)
    }
}

/// The folder and the tools of one recipe.
struct Kitchen: Sendable {
    struct Spoiled: Error, CustomStringConvertible {
        let description: String
    }

    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "cookbook-\(UUID())")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
    }

    func clear() { try? FileManager.default.removeItem(at: folder) }

    func path(_ name: String) -> String { folder.appending(path: name).path }

    /// A new store with a random key, where the key does not matter.
    func store(_ name: String = "store.db") async throws -> Store {
        try await Store(path: path(name), key: .random())
    }

    func check(_ claim: String, _ isTrue: Bool) throws {
        guard isTrue else { throw Spoiled(description: "not so: \(claim)") }
    }

    /// Checks that the work fails with this code.
    func check(
        _ code: StoreError.Code, _ work: () async throws -> Void
    ) async throws {
        do {
            try await work()
        } catch let error as StoreError where error.code == code {
            return
        }
        throw Spoiled(description: "no error, expected \(code)")
    }
}
