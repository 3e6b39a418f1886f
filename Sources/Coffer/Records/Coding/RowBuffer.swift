/// Memory in which rows are made one after the other, before they become an array.
///
/// `Array.append` would make each row elsewhere and check each time whether its storage is unique.
struct RowBuffer<Element>: ~Copyable {
    /// The first `count` elements are initialised, the others are not.
    private var start: UnsafeMutablePointer<Element>
    private(set) var count = 0
    private var capacity: Int
    /// Whether the memory belongs to an array, which owns the `count` elements once it knows their
    /// number.
    private var isBorrowed = true

    /// - Parameter memory: Uninitialised; the first rows are made here.
    fileprivate init?(over memory: UnsafeMutableBufferPointer<Element>) {
        guard let start = memory.baseAddress else { return nil }
        self.start = start
        capacity = memory.count
    }

    deinit {
        start.deinitialize(count: count)
        if !isBorrowed { start.deallocate() }
    }

    /// Adds an element; if making it throws, nothing is added.
    @inline(__always)
    mutating func append(_ make: () throws -> Element) throws {
        try appendInPlace { place in place.initialize(to: try make()) }
    }

    /// Adds an element that is initialised in place; if that throws, nothing is added.
    @inline(__always)
    mutating func appendInPlace(
        _ initialize: (UnsafeMutablePointer<Element>) throws -> Void
    ) throws {
        if count == capacity { grow() }
        try initialize(start + count)
        count &+= 1
    }

    /// Uninitialised memory for the next elements, at least one.
    mutating func spare() -> UnsafeMutableBufferPointer<Element> {
        if count == capacity { grow() }
        return UnsafeMutableBufferPointer(start: start + count, count: capacity - count)
    }

    /// Takes over the first elements of the spare memory, which have been initialised.
    mutating func take(spare initializedCount: Int) {
        count += initializedCount
    }

    @inline(never)
    private mutating func grow() {
        let greater = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        greater.moveInitialize(from: start, count: count)
        if !isBorrowed { start.deallocate() }
        start = greater
        capacity *= 2
        isBorrowed = false
    }

    /// Whether the elements stay where they are: in borrowed memory that is more than half full.
    private var isInPlace: Bool { isBorrowed && count > capacity / 2 }

    /// Leaves the elements to the array that owns their memory, or moves them to a new array.
    fileprivate mutating func take() -> (countInPlace: Int, moved: [Element]) {
        defer { count = 0 }
        if isInPlace { return (count, []) }
        // All threads share the array without capacity, and making one here would write its count.
        guard count > 0 else { return (0, []) }
        let moved = [Element](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            if let target = buffer.baseAddress { target.moveInitialize(from: start, count: count) }
            initializedCount = count
        }
        return (0, moved)
    }
}

extension Array {
    /// The elements that a closure appends.
    ///
    /// - Parameter expectedCount: The expected number of elements. If it is right, elements are
    ///   made in their final memory and never moved.
    static func collecting(
        expectedCount: Int, _ body: (inout RowBuffer<Element>) throws -> Void
    ) rethrows -> [Element] {
        var moved: [Element] = []
        let capacity = Swift.max(16, expectedCount)
        let inPlace = try [Element](unsafeUninitializedCapacity: capacity) { memory, count in
            guard var rows = RowBuffer(over: memory) else { return }
            try body(&rows)
            (count, moved) = rows.take()
        }
        return inPlace.isEmpty ? moved : inPlace
    }
}
