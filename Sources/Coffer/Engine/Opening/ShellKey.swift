/// The commands that open a store in the `sqlcipher` shell.
package enum ShellKey {
    /// Passes the lines to `body`, each a PRAGMA: the key first, in plain text, then the settings.
    /// Returns the result of `body`.
    ///
    /// Both engines accept the lines; SQLCipher 3 ignores the two that it does not know.
    ///
    /// - Parameter body: Receives the lines' UTF-8 bytes, which are zeroed when it returns.
    /// - Throws: Errors of `body`.
    static func withLines<R>(
        key: borrowing RawKey, profile: CipherProfile,
        _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        let hash = profile.hash == .sha512 ? "SHA512" : "SHA1"
        let before = "PRAGMA key = \""
        let after = """
            ";
            PRAGMA cipher_page_size = \(profile.pageByteCount);
            PRAGMA kdf_iter = \(profile.roundCount);
            PRAGMA cipher_hmac_algorithm = HMAC_\(hash);
            PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_\(hash);

            """
        return try key.withKeyText { text in
            let byteCount = before.utf8.count + text.count + after.utf8.count
            let lines = SecretBytes(byteCount: byteCount) { lines in
                lines.copyBytes(from: before.utf8)
                let key = UnsafeMutableRawBufferPointer(rebasing: lines[before.utf8.count...])
                key.copyBytes(from: text)
                let rest = UnsafeMutableRawBufferPointer(rebasing: key[text.count...])
                rest.copyBytes(from: after.utf8)
            }
            return try lines.withUnsafeBytes(body)
        }
    }
}

extension Connection {
    /// Passes the lines that open this connection's file in the `sqlcipher` shell to `body`,
    /// including the key in plain text. Returns the result of `body`.
    ///
    /// - Parameter body: Receives the lines' UTF-8 bytes, which are zeroed when it returns.
    /// - Throws: Errors of `body`; `.unsupported` for a database that is not in a file that Coffer
    ///   opened; `.misuse` before the key is set, `.closed`.
    package func withShellKey<R>(_ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        let open = try fileState()
        return try ShellKey.withLines(key: open.key, profile: open.profile, body)
    }
}
