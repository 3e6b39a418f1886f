/// Memory in which rows are made, one after the other, before they are an array.
///
/// `Array.append` makes each row elsewhere and asks, for each, whether its storage is its own.
struct RowBuffer<Element>: ~Copyable {
    /// The first `count` elements are initialised, the others are not.
    private var start: UnsafeMutablePointer<Element>
    private var count = 0
    private var capacity = 16

    init() {
        start = .allocate(capacity: capacity)
    }

    deinit {
        start.deinitialize(count: count)
        start.deallocate()
    }

    /// Adds an element; if making it throws, nothing was added.
    @inline(__always)
    mutating func append(_ make: () throws -> Element) throws {
        if count == capacity { grow() }
        (start + count).initialize(to: try make())
        count &+= 1
    }

    @inline(never)
    private mutating func grow() {
        let greater = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        greater.moveInitialize(from: start, count: count)
        start.deallocate()
        start = greater
        capacity *= 2
    }

    /// The elements as an array; the buffer is empty afterwards.
    mutating func take() -> [Element] {
        let elements = [Element](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            // An array of no capacity has no address.
            if let target = buffer.baseAddress { target.moveInitialize(from: start, count: count) }
            initializedCount = count
        }
        count = 0
        return elements
    }
}
