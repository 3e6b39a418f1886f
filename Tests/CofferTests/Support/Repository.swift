import Foundation

/// The checked-out files of this package.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// In `.ci/run` nothing is skipped: a missing requirement is a failure.
    static let isCI = ProcessInfo.processInfo.environment["CI"] == "true"
}
