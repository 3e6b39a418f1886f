#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keys in the order in which an index has them, each with its place among the keys asked for.
///
/// `KeyTable` lends it to one run of a statement, as the rows of a table.
///
/// - Complexity: O(*keys*) memory, and time for integers that are near each other; otherwise
///   O(*keys* log *keys*) time.
final class KeyList {
    /// The number of keys to look up.
    let count: Int
    /// How many keys were asked for, NULL among them.
    let askedCount: Int
    /// The position of each key among the keys asked for.
    ///
    /// This list owns the memory and frees it when it is deallocated. A cursor of the table keeps
    /// the list as long as it uses it.
    let places: UnsafeMutablePointer<Int>
    /// The keys, if all are integers. Owned as `places` is.
    let integers: UnsafeMutablePointer<Int64>?
    /// The keys, if not all are integers.
    let values: [Value]
    /// The position of the scan, in its own allocation so that access counts no references.
    let scan: UnsafeMutablePointer<KeyScan>

    /// - Parameter keys: The integers, in any order.
    init(integers keys: UnsafeBufferPointer<Int64>) {
        (count, askedCount) = (keys.count, keys.count)
        let integers = UnsafeMutablePointer<Int64>.allocate(capacity: max(1, count))
        let places = UnsafeMutablePointer<Int>.allocate(capacity: max(1, count))
        for index in 0..<count {
            integers[index] = keys[index]
            places[index] = index
        }
        KeyOrder.sort(integers, places, count: count)
        (self.integers, self.places, values) = (integers, places, [])
        scan = .allocate(capacity: 1)
        scan.initialize(to: KeyScan(count: count))
    }

    /// - Parameter keys: Values in any order. NULL equals nothing, so it is not looked up.
    convenience init(_ keys: [Value]) {
        let integers = keys.compactMap { key -> Int64? in
            if case .integer(let integer) = key { integer } else { nil }
        }
        if integers.count == keys.count {
            self.init(integers: integers)
        } else {
            self.init(values: keys)
        }
    }

    private convenience init(integers keys: [Int64]) {
        // The memory of the array is read in the initialiser only.
        let copy = UnsafeMutableBufferPointer<Int64>.allocate(capacity: keys.count)
        defer { copy.deallocate() }
        _ = copy.initialize(from: keys)
        self.init(integers: UnsafeBufferPointer(copy))
    }

    private init(values keys: [Value]) {
        let present = keys.indices.filter { keys[$0] != .null }
        (count, askedCount) = (present.count, keys.count)
        places = .allocate(capacity: max(1, count))
        places.initialize(from: present, count: count)
        // The order decides only which pages are read together, so equal beginnings may stay.
        var beginnings = keys.beginnings(of: present)
        beginnings.withUnsafeMutableBufferPointer { [places, count] beginnings in
            if let start = beginnings.baseAddress { KeyOrder.sort(start, places, count: count) }
        }
        values = (0..<count).map { [places] in keys[places[$0]] }
        integers = nil
        scan = .allocate(capacity: 1)
        scan.initialize(to: KeyScan(count: count))
    }

    deinit {
        scan.deallocate()
        places.deallocate()
        integers?.deallocate()
    }

    /// A copy of `places`.
    func placesInOrder() -> [Int] {
        (0..<count).map { places[$0] }
    }

    /// The place of the key that the table's scan is at; `nil` if no scan has reached a key.
    @inline(__always)
    var place: Int? {
        let index = scan.pointee.index
        return UInt(bitPattern: index) < UInt(bitPattern: count) ? places[index] : nil
    }
}

/// Where a scan of a `KeyList` is.
struct KeyScan {
    /// The position in the list; -1 before the scan, `count` after it.
    var index = -1
    let count: Int
}

/// Sorts integers by their bytes, which takes far less time than comparing them.
private enum KeyOrder {
    /// Sorts keys, and their places along with them. Equal keys stay in their order.
    static func sort(
        _ keys: UnsafeMutablePointer<Int64>, _ places: UnsafeMutablePointer<Int>, count: Int
    ) {
        guard count > 1 else { return }
        var (lowest, highest, isSorted) = (keys[0], keys[0], true)
        for index in 1..<count {
            isSorted = isSorted && keys[index - 1] <= keys[index]
            lowest = min(lowest, keys[index])
            highest = max(highest, keys[index])
        }
        guard !isSorted else { return }
        let span = UInt64(bitPattern: highest &- lowest)
        let byteCount = (64 - span.leadingZeroBitCount + 7) / 8
        // Each byte takes a pass over the keys, and over 256 counters.
        if count < byteCount * 32 {
            sortByComparing(keys, places, count)
        } else {
            sortByBytes(keys, places, count, lowest: lowest, byteCount: byteCount)
        }
    }

    private static func sortByComparing(
        _ keys: UnsafeMutablePointer<Int64>, _ places: UnsafeMutablePointer<Int>, _ count: Int
    ) {
        let sorted = (0..<count).map { (key: keys[$0], place: places[$0]) }
            .sorted { ($0.key, $0.place) < ($1.key, $1.place) }
        for (index, entry) in sorted.enumerated() {
            keys[index] = entry.key
            places[index] = entry.place
        }
    }

    /// Sorts by the lowest byte first: see <https://en.wikipedia.org/wiki/Radix_sort>.
    private static func sortByBytes(
        _ keys: UnsafeMutablePointer<Int64>, _ places: UnsafeMutablePointer<Int>, _ count: Int,
        lowest: Int64, byteCount: Int
    ) {
        let otherKeys = UnsafeMutablePointer<Int64>.allocate(capacity: count)
        let otherPlaces = UnsafeMutablePointer<Int>.allocate(capacity: count)
        let starts = UnsafeMutablePointer<Int>.allocate(capacity: 256)
        defer {
            otherKeys.deallocate()
            otherPlaces.deallocate()
            starts.deallocate()
        }
        var from = (keys: keys, places: places)
        var to = (keys: otherKeys, places: otherPlaces)
        for pass in 0..<byteCount {
            let shift = UInt64(pass * 8)
            func byte(_ key: Int64) -> Int {
                Int(truncatingIfNeeded: UInt64(bitPattern: key &- lowest) &>> shift & 0xff)
            }
            starts.initialize(repeating: 0, count: 256)
            for index in 0..<count { starts[byte(from.keys[index])] &+= 1 }
            var start = 0
            for value in 0..<256 {
                let next = start &+ starts[value]
                starts[value] = start
                start = next
            }
            for index in 0..<count {
                let key = from.keys[index]
                let target = starts[byte(key)]
                starts[byte(key)] = target &+ 1
                to.keys[target] = key
                to.places[target] = from.places[index]
            }
            swap(&from, &to)
        }
        guard from.keys != keys else { return }
        keys.update(from: from.keys, count: count)
        places.update(from: from.places, count: count)
    }
}

extension [Value] {
    /// Integers in nearly the order in which an index has these values: numbers, texts by their
    /// UTF-8, blobs. Those of texts and blobs are the eight bytes after what all begin with.
    fileprivate func beginnings(of positions: [Int]) -> [Int64] {
        var common: [UInt8]?
        for position in positions {
            self[position].withBytes { bytes in
                let known = common ?? [UInt8](bytes)
                let count = zip(known, bytes).prefix { $0 == $1 }.count
                if count < known.count || common == nil { common = [UInt8](known.prefix(count)) }
            }
        }
        let skipped = common?.count ?? 0
        return positions.map { self[$0].beginning(skipping: skipped) }
    }
}

extension Value {
    /// The bytes of a text or blob; calls nothing for another value.
    fileprivate func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        switch self {
        case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        case .blob(let data): data.withUnsafeBytes(body)
        case .null, .integer, .real: break
        }
    }

    fileprivate func beginning(skipping count: Int) -> Int64 {
        switch self {
        case .null: return .min
        case .integer(let integer): return integer
        case .real(let real):
            // The bits of a negative number grow as it falls.
            let bits = Int64(bitPattern: real.bitPattern)
            return bits < 0 ? bits ^ .max : bits
        case .text, .blob:
            var beginning: UInt64 = 0
            withBytes { bytes in
                for index in count..<count + 8 {
                    beginning = beginning << 8 | (index < bytes.count ? UInt64(bytes[index]) : 0)
                }
            }
            return Int64(bitPattern: beginning ^ 1 << 63)
        }
    }
}
