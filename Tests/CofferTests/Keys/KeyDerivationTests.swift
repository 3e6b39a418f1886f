import Testing

@testable import Coffer

@Suite struct KeyDerivationTests {
    private let salt = [UInt8](100..<116)

    @Test func `the vectors are there`() {
        #expect(KeyVectors.derivations.count == 18)
    }

    @Test(.againstHanging, .onOwnThreads, arguments: KeyVectors.derivations)
    func `a passphrase derives to the key that hashlib derives`(
        vector: KeyVectors.Derivation
    ) throws {
        let passphrase = try KeyVectors.bytes(hex: vector.passphrase)
        let salt = try KeyVectors.bytes(hex: vector.salt)
        let profile = try KeyVectors.profile(named: vector.profile)
        let countBefore = KeyDerivation.derivationCount
        let key = try KeyDerivation.rawKey(
            from: .passphrase(passphrase), salt: salt, profile: profile)
        #expect(plainBytes(key.bytes) == (try KeyVectors.bytes(hex: vector.key)))
        let keySalt = key.salt
        #expect(keySalt == salt)
        // Other tests may derive at the same time, so the exact number is unknown.
        #expect(KeyDerivation.derivationCount > countBefore)
    }

    @Test(arguments: KeyVectors.profiles)
    func `32 raw bytes are the key, with the file's salt`(profile: CipherProfile) throws {
        let bytes = [UInt8](0..<32)
        let key = try KeyDerivation.rawKey(from: .raw(bytes), salt: salt, profile: profile)
        #expect(plainBytes(key.bytes) == bytes)
        let keySalt = key.salt
        #expect(keySalt == salt)
    }

    @Test(arguments: [[], [UInt8](100..<116)])
    func `48 raw bytes bring their own salt`(salt: [UInt8]) throws {
        let bytes = [UInt8](0..<48)
        let key = try KeyDerivation.rawKey(from: .raw(bytes), salt: salt, profile: .portable)
        #expect(plainBytes(key.bytes) == [UInt8](0..<32))
        let keySalt = key.salt
        #expect(keySalt == [UInt8](32..<48))
    }

    @Test func `a key that cannot be one is refused before anything is derived`() {
        for byteCount in [0, 31, 33, 64] {
            let error = #expect(throws: StoreError.self) {
                let bytes = [UInt8](repeating: 1, count: byteCount)
                _ = try KeyDerivation.rawKey(from: .raw(bytes), salt: salt, profile: .sqlcipher4)
            }
            #expect(error?.code == .misuse)
        }
    }

    @Test(arguments: [0, 15, 17])
    func `a salt of another length is refused with .misuse`(byteCount: Int) {
        let error = #expect(throws: StoreError.self) {
            let salt = [UInt8](repeating: 0, count: byteCount)
            _ = try KeyDerivation.rawKey(
                from: .passphrase("text"), salt: salt, profile: .sqlcipher3)
        }
        #expect(error?.code == .misuse)
    }

    @Test func `random salts have 16 bytes and do not repeat`() {
        let salts = Set((0..<1000).map { _ in KeyDerivation.randomSalt() })
        #expect(salts.count == 1000)
        #expect(salts.allSatisfy { $0.count == 16 })
    }
}
