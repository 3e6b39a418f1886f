import Testing

@testable import Coffer

@Suite struct CipherProfileTests {
    @Test(arguments: [
        (CipherProfile.sqlcipher4, "sqlcipher4", 4096, 256_000, 64, 80),
        (.portable, "portable", 4096, 256_000, 20, 48),
        (.sqlcipher3, "sqlcipher3", 1024, 64_000, 20, 48),
        (.sqlcipher2, "sqlcipher2", 1024, 4000, 20, 48),
        (.sqlcipher1, "sqlcipher1", 1024, 4000, 0, 16),
    ])
    func `a profile has SQLCipher's numbers`(
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

    @Test func `a name leads to a profile that a store can have, and to no other`() {
        #expect(CipherProfile.all == [.sqlcipher4, .portable, .sqlcipher3])
        for profile in CipherProfile.all {
            #expect(CipherProfile(name: profile.name) == profile)
        }
        for name in ["", "sqlcipher2", "sqlcipher1", "SQLCIPHER4", "portable "] {
            #expect(CipherProfile(name: name) == nil)
        }
    }

    @Test func `another page size keeps the name and shows in the description`() throws {
        for profile in CipherProfile.all {
            for size in [1024, 2048, 4096, 8192, 16384, 32768, 65536] {
                let other = try profile.with(pageByteCount: size)
                #expect(other.name == profile.name && other.pageByteCount == size)
                #expect((other == profile) == (size == profile.pageByteCount))
                #expect("\(other)".contains("\(size)") == (other != profile))
                #expect(try other.with(pageByteCount: profile.pageByteCount) == profile)
            }
        }
    }

    @Test func `a page size that SQLite or the cipher cannot have is misuse`() {
        for size in [Int.min, -1024, 0, 1, 256, 512, 1000, 1025, 4095, 65537, 131_072, Int.max] {
            expect(.misuse) { try CipherProfile.portable.with(pageByteCount: size) }
        }
    }
}
