import Coffer

/// The tag of each page of a file, and the digest of all of them.
///
/// A tag names the content of a page, so two lists show which pages differ, without their
/// plaintext. The digest is the sum of what each page adds to it, so it follows a change without
/// the others.
struct PageTags: Sendable, Equatable {
    private(set) var digest: UInt128 = 0
    private var bytes: [UInt8] = []

    private static let byteCount = PageSnapshot.tagByteCount

    var count: Int { bytes.count / Self.byteCount }

    /// The tag of a page, counted from 1; `nil` beyond the last page.
    subscript(number: Int) -> ArraySlice<UInt8>? {
        guard number <= count else { return nil }
        return bytes[(number - 1) * Self.byteCount..<number * Self.byteCount]
    }

    /// Adds the page after the last one.
    mutating func append(_ tag: [UInt8], _ keys: ReplicaKeys) {
        bytes += tag
        digest &+= keys.digest(ofPage: count, tag: tag)
    }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count * Self.byteCount) }
}
