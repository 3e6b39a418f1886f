/// Finds out which pages of a small file are damaged, once a read has failed.
///
/// SQLite says only that some page failed. Checking all of them is cheap enough for a file of up
/// to 16 MiB (some 50 ms). Later calls check the known pages, and all pages only if none is known
/// or one of the known ones passes. A page that is damaged only in the WAL has no number here.
final class DamageReport {
    static let maximumByteCount = 16 << 20
    static let maximumPageCount = 16

    private var known: [Int] = []

    /// The numbers of at most 16 pages whose MAC does not fit now, ascending, counted from 1.
    ///
    /// Empty if all pages fit, if the profile has no MAC, if the file is larger than 16 MiB, or if
    /// reading it fails. Once it has found pages, it returns them as long as all of them fail, even
    /// if others fail too.
    func pages(_ file: OpenFile) -> [Int] {
        guard file.profile.pageMAC != .none else { return [] }
        let raw = RawPages(file.handle, key: file.key, profile: file.profile)
        do throws(StoreError) {
            guard try file.handle.rawByteCount() <= Self.maximumByteCount else { return [] }
            if !known.isEmpty {
                var failing: [Int] = []
                let log = raw.walPages()
                for page in known where try !raw.isAuthentic(page, in: log) {
                    failing.append(page)
                }
                if failing == known { return known }
            }
            let found = try raw.damaged(maximumCount: Self.maximumPageCount)
            known = found
            return found
        } catch {
            return []
        }
    }
}
