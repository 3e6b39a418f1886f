import Foundation

@testable import Coffer

/// A folder that is removed with its owner.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = URL.temporaryDirectory.appending(path: "coffer-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    func path(_ name: String = "store.db") -> String { url.appending(path: name).path }

    /// Replaces each word in capitals: `FOLDER` by the path of this folder, and any other, such as
    /// `STORE`, by the path of the file of that name in it, `store`.
    func paths(for words: [String]) -> [String] {
        words.map { word in
            guard word.allSatisfy({ ("A"..."Z").contains($0) }) else { return word }
            return word == "FOLDER" ? url.path : path(word.lowercased())
        }
    }

    /// Copies a closed store, so that a test can damage it.
    func copy(_ path: String, as name: String) throws -> String {
        let target = self.path(name)
        try FileManager.default.copyItem(atPath: path, toPath: target)
        return target
    }
}

/// Removes a closed store with all files that belong to it.
func removeStore(_ path: String) {
    for suffix in ["", "-wal", "-shm", "-journal"] { unlinkIfPresent(path + suffix) }
}

extension StoreKey {
    /// A raw key, because deriving a passphrase is slow in a debug build, and rarely what a test is
    /// about.
    static func numbered(_ number: UInt8) -> StoreKey {
        .raw([UInt8](repeating: number, count: 32))
    }
}

extension Configuration {
    /// The users' configuration, with time for a loaded machine.
    static func testing(
        _ journalMode: JournalMode = .wal, profile: CipherProfile? = nil
    ) -> Configuration {
        var configuration = Configuration()
        configuration.journalMode = journalMode
        configuration.profile = profile
        configuration.busyTimeout = .seconds(20)
        configuration.waitTimeout = .seconds(300)
        // On a busy machine bodies take long; a test of the bound sets it.
        configuration.groupCommit.maximumDuration = .seconds(60)
        return configuration
    }

    /// For tests that expect `.busy`.
    static func impatient(_ journalMode: JournalMode = .wal) -> Configuration {
        var configuration = testing(journalMode)
        configuration.busyTimeout = .milliseconds(200)
        configuration.waitTimeout = .milliseconds(300)
        return configuration
    }
}

/// The profiles that the linked engine reads and writes.
let supportedProfiles: [CipherProfile] = {
    let all: [CipherProfile] = [.sqlcipher4, .portable, .sqlcipher3]
    guard let capabilities = try? Engine.capabilities else { return [] }
    return all.filter(capabilities.supports)
}()

/// Whether the linked engine is SQLCipher 4.
let isEngine4 = (try? Engine.capabilities.cipherMajorVersion) == 4

let journalModes: [Configuration.JournalMode] = [.wal, .delete]

/// Whether the long crash, fault and stress runs were requested.
let isLongRun = ProcessInfo.processInfo.environment["COFFER_LONG_TESTS"] == "1"

/// Whether `make proof` runs: what the harnesses try is counted.
let isProof = ProcessInfo.processInfo.environment["COFFER_PROOF"] != nil
