import Testing

@testable import Coffer

@Suite struct CipherProfileTests {
    @Test(arguments: [
        (CipherProfile.sqlcipher4, "sqlcipher4", 4096, 256_000, 64, 80),
        (.portable, "portable", 4096, 256_000, 20, 48),
        (.sqlcipher3, "sqlcipher3", 1024, 64_000, 20, 48),
    ])
    func `a profile has the numbers of SQLCipher`(
        profile: CipherProfile, name: String, page: Int, rounds: Int, mac: Int, reserve: Int
    ) {
        #expect(profile.name == name)
        #expect("\(profile)" == name)
        #expect(profile.pageByteCount == page)
        #expect(profile.roundCount == rounds)
        #expect(profile.macByteCount == mac)
        #expect(profile.reserveByteCount == reserve)
    }

    @Test func `profiles differ from one another`() {
        #expect(Set(KeyVectors.profiles).count == 3)
    }
}
