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

    /// Sets the tag of a page. Pages between the last one and it get zeros.
    mutating func set(_ number: Int, _ tag: some Collection<UInt8>, _ keys: ReplicaKeys) {
        let empty = [UInt8](repeating: 0, count: Self.byteCount)
        while count < number { append(empty, keys) }
        let start = (number - 1) * Self.byteCount
        digest &-= keys.digest(
            ofPage: number, tag: bytes[start..<start + Self.byteCount])
        bytes.replaceSubrange(start..<start + Self.byteCount, with: tag)
        digest &+= keys.digest(ofPage: number, tag: tag)
    }

    /// Sets the tags of some pages as others have them.
    mutating func set(_ numbers: ArraySlice<UInt32>, from tags: PageTags, _ keys: ReplicaKeys) {
        for number in numbers {
            if let tag = tags[Int(number)] { set(Int(number), tag, keys) }
        }
    }

    /// Leaves out the pages after so many.
    mutating func cut(to newCount: Int, _ keys: ReplicaKeys) {
        guard newCount < count else { return }
        digest &-= digest(of: newCount + 1..<count + 1, keys)
        bytes.removeLast((count - newCount) * Self.byteCount)
    }

    /// The digest of some pages.
    func digest(of numbers: Range<Int>, _ keys: ReplicaKeys) -> UInt128 {
        numbers.clamped(to: 1..<count + 1).reduce(into: 0) { sum, number in
            let start = (number - 1) * Self.byteCount
            sum &+= keys.digest(ofPage: number, tag: bytes[start..<start + Self.byteCount])
        }
    }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count * Self.byteCount) }
}
