import Coffer

/// The pages of a store that a replica does not have yet, as of one moment, or a part of them.
struct PageChanges {
    /// Of the pages that the replica has after these.
    let tags: PageTags
    /// Pages of the file.
    let pageCount: Int
    /// Identifies the moment; `nil` if nothing does, and for a part.
    let version: PageVersion?
    /// The number of the key that the pages are under; `nil` for a file without a keyring.
    let epoch: UInt32?
    let spool: PageSpool
    /// Pages that differ too, beyond the limit.
    let restCount: Int

    /// Whether the replica has all pages of the moment after these.
    var isWhole: Bool { restCount == 0 }

    /// Compares the tags of all pages, and reads those that differ.
    ///
    /// Without WAL, writes wait meanwhile.
    ///
    /// - Parameters:
    ///   - source: The file when the replication began.
    ///   - tags: Of the pages that the replica has.
    ///   - version: Of the moment that the replica has; `nil` if it is not known.
    ///   - limit: The most pages to read. If more differ, those with the lowest numbers are read.
    /// - Returns: `nil` if the file has that version.
    /// - Throws: `.damaged` for a page that fails authentication; as `Store.withPages`.
    /// - Complexity: O(*pages*): 16 bytes of each are read, and those that differ.
    init?(
        of store: Store, _ source: ReplicaSource, since tags: PageTags,
        _ version: PageVersion?, _ keys: ReplicaKeys, limit: Int, _ cancellation: Cancellation?
    ) throws {
        let found = try store.withPages(of: source, since: version, cancellation) { snapshot in
            // Only the tags that differ are added to the digest.
            var new = tags
            new.cut(to: snapshot.pageCount, keys)
            var restCount = 0
            let spool = PageSpool(pageByteCount: snapshot.pageByteCount, beside: source.path)
            for number in stride(from: 1, through: snapshot.pageCount, by: 1) {
                if number & 0xff == 0 { try snapshot.requireGoing() }
                let tag = try snapshot.tag(ofPage: number)[...]
                let known = tags[number]
                if let known, known.elementsEqual(tag) { continue }
                if spool.count < limit {
                    try spool.append(snapshot.page(number), number)
                    if number > new.count {
                        new.append(tag, keys)
                    } else {
                        new.set(number, tag, keys)
                    }
                } else {
                    // Pages are sent in order, so that after the first that is new there is none.
                    guard known != nil else {
                        restCount += snapshot.pageCount - number + 1
                        break
                    }
                    restCount += 1
                }
            }
            return PageChanges(
                tags: new, pageCount: snapshot.pageCount,
                version: restCount == 0 ? snapshot.version : nil, epoch: snapshot.epoch,
                spool: spool, restCount: restCount)
        }
        guard let found else { return nil }
        self = found
    }

    private init(
        tags: PageTags, pageCount: Int, version: PageVersion?, epoch: UInt32?, spool: PageSpool,
        restCount: Int
    ) {
        (self.tags, self.pageCount, self.version) = (tags, pageCount, version)
        (self.epoch, self.spool, self.restCount) = (epoch, spool, restCount)
    }
}
