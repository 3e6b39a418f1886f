import Coffer

/// The tag of each page of a file, and the digest of all of them.
///
/// A tag names the content of a page, so two lists show which pages differ, without their
/// plaintext. The digest is the sum of what each page adds to it, so it follows a change without
/// the others.
///
/// Copies share the tags that none of them has changed since: several states of a large file take
/// little more memory than one.
struct PageTags: Sendable, Equatable {
    private(set) var count = 0
    private(set) var digest: UInt128 = 0
    /// The tags, each array but the last with `blockCount` of them.
    private var blocks: [[UInt8]] = []

    private static let byteCount = PageSnapshot.tagByteCount
    private static let blockCount = 4096

    /// The tag of a page, counted from 1; `nil` beyond the last page.
    subscript(number: Int) -> ArraySlice<UInt8>? {
        guard number <= count else { return nil }
        return blocks[Self.block(of: number)][Self.range(of: number)]
    }

    /// Adds the page after the last one.
    mutating func append(_ tag: ArraySlice<UInt8>, _ keys: ReplicaKeys) {
        count += 1
        if Self.block(of: count) == blocks.count { blocks.append([]) }
        blocks[blocks.count - 1] += tag
        digest &+= keys.digest(ofPage: count, tag: tag)
    }

    /// Sets the tag of a page. Pages between the last one and it get zeros.
    mutating func set(_ number: Int, _ tag: ArraySlice<UInt8>, _ keys: ReplicaKeys) {
        let empty = [UInt8](repeating: 0, count: Self.byteCount)[...]
        while count < number { append(empty, keys) }
        let (block, range) = (Self.block(of: number), Self.range(of: number))
        digest &-= keys.digest(ofPage: number, tag: blocks[block][range])
        blocks[block].replaceSubrange(range, with: tag)
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
        count = newCount
        blocks.removeLast(blocks.count - (newCount + Self.blockCount - 1) / Self.blockCount)
        guard newCount > 0 else { return }
        blocks[blocks.count - 1].removeSubrange(Self.range(of: newCount).upperBound...)
    }

    /// The digest of some pages.
    func digest(of numbers: Range<Int>, _ keys: ReplicaKeys) -> UInt128 {
        numbers.clamped(to: 1..<count + 1).reduce(into: 0) { sum, number in
            sum &+= keys.digest(
                ofPage: number, tag: blocks[Self.block(of: number)][Self.range(of: number)])
        }
    }

    private static func block(of number: Int) -> Int { (number - 1) / blockCount }

    /// The bytes of a tag in its block.
    private static func range(of number: Int) -> Range<Int> {
        let start = (number - 1) % blockCount * byteCount
        return start..<start + byteCount
    }
}
