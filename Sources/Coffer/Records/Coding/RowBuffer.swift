/// Memory in which rows are made, one after the other, before they are an array.
///
/// `Array.append` makes each row elsewhere and asks, for each, whether its storage is its own.
struct RowBuffer<Element>: ~Copyable {
    /// The first `count` elements are initialised, the others are not.
    private var start: UnsafeMutablePointer<Element>
    private(set) var count = 0
    private var capacity: Int
    /// Whether the memory is an array's: it is full of `count` elements when the array says so.
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

    /// Adds an element; if making it throws, nothing was added.
    @inline(__always)
    mutating func append(_ make: () throws -> Element) throws {
        try appendInPlace { place in place.initialize(to: try make()) }
    }

    /// Adds an element that is made in its place; if that throws, nothing was added.
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

    /// Whether the elements are where they shall stay: in the memory lent, and not lost in it.
    private var isInPlace: Bool { isBorrowed && count > capacity / 2 }

    /// Lets the elements go to the array whose memory they are in, or moves them to one of their
    /// own.
    fileprivate mutating func take() -> (countInPlace: Int, moved: [Element]) {
        defer { count = 0 }
        if isInPlace { return (count, []) }
        let moved = [Element](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            // An array of no capacity has no address.
            if let target = buffer.baseAddress { target.moveInitialize(from: start, count: count) }
            initializedCount = count
        }
        return (0, moved)
    }
}

extension Array {
    /// The elements that a closure appends.
    ///
    /// - Parameter expectedCount: How many there may be. If that is right they are made where they
    ///   stay, and none is moved.
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
