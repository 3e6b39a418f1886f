import Foundation

/// The environment variables that name the source of a secret, for a command line that names none.
///
/// None holds a secret: the environment reaches every program that is started, and other users on
/// some systems.
enum SecretVariables {
    /// The source that the variables name; `nil` if none is set.
    ///
    /// - Parameter isNew: Whether it is the source of the new secret, whose variables have `NEW_`.
    /// - Throws: `ToolError` `.secretSource` for a variable that would hold a secret, `.usage` if
    ///   several name a source.
    static func source(
        isNew: Bool, in environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> SecretSource? {
        let prefix = isNew ? "COFFER_NEW_" : "COFFER_"
        func value(_ name: String) -> String? {
            environment[prefix + name].flatMap { $0.isEmpty ? nil : $0 }
        }
        typealias Named = (name: String, source: SecretSource)
        func named(_ name: String, _ source: (String) -> SecretSource) -> Named? {
            value(name).map { (prefix + name, source($0)) }
        }
        // A new recipient is named by the public key, never by the private one.
        func current(_ name: String, _ source: (String) -> SecretSource) -> Named? {
            isNew ? nil : named(name, source)
        }
        for name in ["PASSPHRASE", "PASSWORD", "RAW_KEY", "KEY"] where value(name) != nil {
            throw ToolError(
                .secretSource,
                "\(prefix)\(name) is refused: every program that is started sees the environment",
                hint: "Name a file in \(prefix)PASSPHRASE_FILE, \(prefix)KEY_FILE or "
                    + "\(prefix)RAW_KEY_FILE, or a command in \(prefix)PASSPHRASE_COMMAND or "
                    + "\(prefix)RAW_KEY_COMMAND.")
        }
        let sources = [
            named("PASSPHRASE_FILE") { .passphrase(.file($0)) },
            named("PASSPHRASE_COMMAND") { .passphrase(.command($0)) },
            named("RAW_KEY_FILE") { .rawKey(.file($0)) },
            named("RAW_KEY_COMMAND") { .rawKey(.command($0)) },
            named("KEY_FILE") { SecretSource(origin: .file($0), form: .keyFile) },
            current("IDENTITY_FILE") { SecretSource(origin: .file($0), form: .identity) },
        ].compactMap { $0 }
        guard sources.count <= 1 else {
            let names = sources.map(\.name).joined(separator: " and ")
            throw ToolError(
                .usage, "\(names) name the source of one secret",
                hint: "Set one of them, or name the source by an option, which counts instead.")
        }
        return sources.first?.source
    }
}
