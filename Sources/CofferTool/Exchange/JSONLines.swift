import Foundation

/// Reads the lines of a file, without their LF. A CR before it remains: it is space in JSON.
final class JSONLines {
    /// Bytes to read at once.
    private static let chunkByteCount = 1 << 20
    /// The longest line, which is about the engine's own limit for a value.
    private static let maximumLineByteCount = 1 << 30

    private let input: InputFile
    private var memory: UnsafeMutableRawPointer?
    private var capacity = 0
    /// Where in the memory the bytes are that no line had yet.
    private var unread = 0..<0
    private var isAtStart = true
    private var isAtEnd = false

    init(_ input: InputFile) {
        self.input = input
    }

    deinit { free(memory) }

    /// The next line; `nil` at the end.
    ///
    /// - Returns: Bytes that may be changed, and are valid until the next call.
    func next() throws -> UnsafeMutableBufferPointer<UInt8>? {
        var scannedCount = 0
        while true {
            if let count = lineByteCount(after: scannedCount) {
                return take(count, dropping: 1)
            }
            guard !isAtEnd else { return unread.isEmpty ? nil : take(unread.count, dropping: 0) }
            scannedCount = unread.count
            try readChunk()
        }
    }

    private func lineByteCount(after scannedCount: Int) -> Int? {
        guard let start = memory.map({ $0 + unread.lowerBound }),
            let end = memchr(start + scannedCount, 0x0a, unread.count - scannedCount)
        else { return nil }
        return end - start
    }

    private func take(
        _ count: Int, dropping endCount: Int
    ) -> UnsafeMutableBufferPointer<UInt8> {
        let line = UnsafeMutableRawBufferPointer(rebasing: room(unread.lowerBound, count))
        unread = unread.lowerBound + count + endCount..<unread.upperBound
        return line.bindMemory(to: UInt8.self)
    }

    private func room(_ start: Int, _ count: Int) -> Slice<UnsafeMutableRawBufferPointer> {
        UnsafeMutableRawBufferPointer(start: memory, count: capacity)[start..<start + count]
    }

    private func readChunk() throws {
        if let memory, unread.lowerBound > 0 {
            memmove(memory, memory + unread.lowerBound, unread.count)
            unread = 0..<unread.count
        }
        guard unread.count <= Self.maximumLineByteCount else {
            throw ToolError(.badInput, "\(input.name) has a line of more than 1 GiB")
        }
        try grow(to: unread.count + Self.chunkByteCount)
        let chunk = UnsafeMutableRawBufferPointer(
            rebasing: room(unread.count, Self.chunkByteCount))
        let count = try input.fill(chunk)
        isAtEnd = count < chunk.count
        // Some editors put this mark before UTF-8.
        let hasMark = isAtStart && chunk.prefix(count).starts(with: [0xef, 0xbb, 0xbf])
        unread = (hasMark ? 3 : 0)..<unread.count + count
        isAtStart = false
    }

    /// Makes room without a second copy of a long line, where the system can move pages.
    private func grow(to count: Int) throws {
        guard count > capacity else { return }
        let larger = max(count, 2 * capacity)
        guard let memory = realloc(memory, larger) else {
            throw ToolError(
                .failure, "there is no memory for a line of \(input.name)",
                hint: "Free memory, or put long values into shorter lines.")
        }
        (self.memory, capacity) = (memory, larger)
    }
}
