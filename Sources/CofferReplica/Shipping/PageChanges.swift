import Coffer

/// The pages of a store that a replica does not have yet, as of one moment.
struct PageChanges {
    let tags: PageTags
    /// Identifies the moment.
    let version: [UInt8]
    let spool: PageSpool

    /// Compares the tags of all pages, and reads those that differ.
    ///
    /// Without WAL, writes wait meanwhile.
    ///
    /// - Parameters:
    ///   - tags: Of the pages that the replica has.
    ///   - version: Of the moment that the replica has; `nil` if it is not known.
    /// - Returns: `nil` if nothing was committed since `version`.
    /// - Throws: `.damaged` for a page that fails authentication; as `Store.withPages`.
    /// - Complexity: O(*pages*): 16 bytes of each are read, and those that differ.
    init?(
        of store: Store, since tags: PageTags, _ version: [UInt8]?, _ keys: ReplicaKeys,
        beside path: String, _ cancellation: Cancellation?
    ) throws {
        let found = try store.withPages(cancellation) { snapshot -> PageChanges? in
            guard snapshot.version != version else { return nil }
            var new = PageTags()
            new.reserve(snapshot.pageCount)
            let spool = PageSpool(pageByteCount: snapshot.pageByteCount, beside: path)
            for number in stride(from: 1, through: snapshot.pageCount, by: 1) {
                if number & 0xfff == 0, cancellation?.isCancelled == true {
                    throw CancellationError()
                }
                let tag = try snapshot.tag(ofPage: number)
                new.append(tag, keys)
                if tags[number].map({ $0.elementsEqual(tag) }) != true {
                    try spool.append(snapshot.page(number), number)
                }
            }
            return PageChanges(tags: new, version: snapshot.version, spool: spool)
        }
        guard let found else { return nil }
        self = found
    }

    private init(tags: PageTags, version: [UInt8], spool: PageSpool) {
        (self.tags, self.version, self.spool) = (tags, version, spool)
    }
}
