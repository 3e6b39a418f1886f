/// Looks for pages of the main file that fail authentication, when something else has failed.
struct DamageScan {
    let handle: Handle
    let profile: CipherProfile

    /// Numbers of the first damaged pages.
    ///
    /// - Complexity: O(*pages*).
    func pages(key: borrowing RawKey, countMax: Int) throws(StoreError) -> [Int] {
        let authenticator = PageAuthenticator(key: key, profile: profile)
        let size = profile.pageByteCount
        let pageCount = try handle.rawByteCount() / size
        var damaged: [Int] = []
        for number in 1...max(1, pageCount) where number != lockPage {
            guard let page = try handle.rawBytes(at: (number - 1) * size, count: size) else {
                break
            }
            let isAuthentic = page.withUnsafeBytes {
                authenticator.authenticates($0, number: number)
            }
            if !isAuthentic { damaged.append(number) }
            if damaged.count == countMax { break }
        }
        return damaged
    }

    /// The page at 2^30 holds SQLite's lock bytes and is never written.
    /// See <https://www.sqlite.org/fileformat2.html#the_lock_byte_page>.
    private var lockPage: Int { (1 << 30) / profile.pageByteCount + 1 }
}
