/// The fields of one record of a CSV file. It is filled again for the next one.
final class CSVRecord {
    /// The line, from 1, on which the record begins.
    fileprivate(set) var line = 0
    /// The content of the fields, one after the other.
    private var bytes: UnsafeMutablePointer<UInt8>
    private var capacity = 256
    private(set) var byteCount = 0
    /// Where each field ends.
    private var ends: [Int] = []
    /// Whether a field is in quotes, so that an empty one was meant.
    private var hasQuotes = false

    init() {
        bytes = .allocate(capacity: capacity)
    }

    deinit { bytes.deallocate() }

    var fieldCount: Int { ends.count }

    /// Whether the line has nothing at all.
    var isBlank: Bool { ends.count == 1 && byteCount == 0 && !hasQuotes }

    /// Whether nothing was read yet.
    var isEmpty: Bool { ends.isEmpty && byteCount == 0 && !hasQuotes }

    /// A field's bytes, valid until the record is filled again.
    subscript(index: Int) -> UnsafeBufferPointer<UInt8> {
        let start = index == 0 ? 0 : ends[index - 1]
        return UnsafeBufferPointer(start: bytes + start, count: ends[index] - start)
    }

    // MARK: Filling

    func begin(line: Int) {
        self.line = line
        byteCount = 0
        hasQuotes = false
        ends.removeAll(keepingCapacity: true)
    }

    func append(_ run: UnsafeBufferPointer<UInt8>) {
        guard let start = run.baseAddress, !run.isEmpty else { return }
        if byteCount + run.count > capacity { grow(to: byteCount + run.count) }
        (bytes + byteCount).update(from: start, count: run.count)
        byteCount += run.count
    }

    func noteQuotes() { hasQuotes = true }

    func endField() { ends.append(byteCount) }

    private func grow(to count: Int) {
        capacity = max(count, 2 * capacity)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.update(from: bytes, count: byteCount)
        bytes.deallocate()
        bytes = larger
    }
}
