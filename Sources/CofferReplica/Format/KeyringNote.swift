import Coffer
import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keyring that a store had when a record was written: every record names it.
struct KeyringNote: Codable, Equatable, Sendable {
    let term: UInt64
    let number: UInt64
    /// SHA-256 of the keyring's bytes.
    let hash: Data
    let generation: UInt64
    /// The number of the key that all pages are under after the last commit; `nil` before the first
    /// one.
    var epoch: UInt32?

    init(_ name: KeyringName, _ keyring: ReplicaKeyring, epoch: UInt32?) {
        (term, number) = (name.term, name.number)
        hash = Data(SHA256.hash(data: keyring.bytes))
        generation = keyring.generation
        self.epoch = epoch
    }

    var name: KeyringName { KeyringName(term: term, number: number) }

    func isOf(_ keyring: ReplicaKeyring) -> Bool { isOf(keyring.bytes) }

    func isOf(_ bytes: [UInt8]) -> Bool { hash.elementsEqual(SHA256.hash(data: bytes)) }
}
