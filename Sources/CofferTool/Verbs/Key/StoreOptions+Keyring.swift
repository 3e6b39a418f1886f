import Coffer

extension StoreOptions {
    /// Opens a store by a credential of its keyring, and closes it whatever `body` does.
    ///
    /// - Throws: `ToolError` `.secretSource` for a raw key; `StoreError` `.keyringMissing` before a
    ///   passphrase is asked for, which would otherwise be taken for the key of the file; as
    ///   `withStore`.
    func withKeyring<T: Sendable>(
        _ secret: SecretOptions, mode: OpenMode = .mustExist,
        hardLinks: Configuration.HardLinks = .refused, _ body: (Store) async throws -> T
    ) async throws -> T {
        try requireKeyring(secret)
        return try await withStore(secret, mode: mode, hardLinks: hardLinks, body)
    }

    /// Checks that the store has a keyring, and that the secret can be a credential of it.
    ///
    /// - Throws: As `withKeyring`.
    func requireKeyring(_ secret: SecretOptions) throws {
        RunFiles.opens(path)
        _ = try StoreFileStatus(path: path)
        _ = try Keyring(of: path)
        guard try secret.source().form != .rawKey else {
            throw ToolError(
                .secretSource, "a raw key is not a credential of a keyring",
                hint: "Name one: coffer key list \(ShellWord.of(path)) shows their kinds.")
        }
    }
}
