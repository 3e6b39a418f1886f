import Crypto

// The root before the present one. A keyring has it, wrapped by the present root, while pages may
// still be under a key of it.
extension KeyringContent {
    /// Whether a replacement of the root has begun and has not ended.
    var hasFormerRoot: Bool { formerEpoch != 0 }

    /// Keeps a root as the former one.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the file under that root.
    ///   - nonce: 12 random bytes, never used twice for a root.
    /// - Throws: `.engine` if the crypto library fails.
    mutating func keep(
        former: borrowing RootKey, epoch: UInt32, under root: borrowing RootKey,
        nonce: [UInt8] = .random(byteCount: 12)
    ) throws(StoreError) {
        do {
            formerRoot = try former.bytes.withUnsafeBytes { bytes in
                [UInt8](
                    try ChaChaPoly.seal(
                        bytes, using: root.formerWrapKey(), nonce: ChaChaPoly.Nonce(data: nonce),
                        authenticating: Self.bound(toFormerEpoch: epoch, id: id)
                    ).combined)
            }
        } catch {
            throw StoreError(.engine, "the former root key could not be wrapped", cause: error)
        }
        formerEpoch = epoch
    }

    /// The former root; `nil` if the keyring has none.
    ///
    /// - Throws: `.keyringDamaged` if it does not open.
    func formerRoot(under root: borrowing RootKey) throws(StoreError) -> RootKey? {
        guard hasFormerRoot else { return nil }
        // One variable, so that the bytes that are wiped are those that were opened.
        guard
            var bytes = try? ChaChaPoly.open(
                ChaChaPoly.SealedBox(combined: formerRoot), using: root.formerWrapKey(),
                authenticating: Self.bound(toFormerEpoch: formerEpoch, id: id)),
            bytes.count == RootKey.byteCount
        else {
            throw KeyringArea.damaged("its former root does not open")
        }
        defer { bytes.withUnsafeMutableBytes { $0.wipe() } }
        return RootKey(bytes: SecretBytes(copying: bytes, byteCount: bytes.count))
    }

    mutating func forgetFormerRoot() {
        formerEpoch = 0
        formerRoot = [UInt8](repeating: 0, count: Self.formerRootByteCount)
    }

    /// The content as it was for a file that is still under the former root.
    var underFormerRoot: KeyringContent {
        var content = self
        content.epoch = formerEpoch
        return content
    }

    private static func bound(toFormerEpoch epoch: UInt32, id: [UInt8]) -> [UInt8] {
        Array("coffer1 former".utf8) + id + epoch.bigEndianBytes
    }
}

extension RootKey {
    fileprivate borrowing func formerWrapKey() -> SymmetricKey {
        bytes.expanded(Array("coffer1 former".utf8)).symmetricKey()
    }
}
