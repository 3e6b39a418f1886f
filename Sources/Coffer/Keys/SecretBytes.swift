/// Secret bytes with one owner.
///
/// They live in pages of their own, which are locked and left out of core dumps as far as the
/// system allows. The pages are zeroed when the value ends. There is no description, no coding
/// and no `==`: a secret is lent to a closure, or it is not read.
struct SecretBytes: ~Copyable, @unchecked Sendable {
    // Unchecked, because it holds a pointer. It is safe: the memory is written only before the
    // initialiser returns and in `deinit`, and `~Copyable` lets neither overlap with a reader.
    /// Whole locked pages; the secret is at their start.
    private let pages: UnsafeMutableRawBufferPointer

    /// How many bytes the secret has. The count is not secret.
    let byteCount: Int

    /// Creates a secret from what `body` writes.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes, from 0.
    ///   - body: Writes the bytes, which are zero before. If it throws, they are zeroed at once.
    init<E: Error>(
        byteCount: Int, initializing body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        let pages = LockedMemory.allocate(byteCount: byteCount)
        do throws(E) {
            try body(UnsafeMutableRawBufferPointer(rebasing: pages[..<byteCount]))
        } catch {
            LockedMemory.free(pages)
            throw error
        }
        self.pages = pages
        self.byteCount = byteCount
    }

    /// Creates a secret with the same bytes; the caller wipes the source.
    init(copying bytes: UnsafeRawBufferPointer) {
        self.init(byteCount: bytes.count) { $0.copyMemory(from: bytes) }
    }

    deinit {
        LockedMemory.free(pages)
    }

    /// Lends the bytes to `body`, which must not keep the pointer.
    borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(rebasing: pages[..<byteCount]))
    }

    /// Returns a second secret with the same bytes, which ends by itself.
    borrowing func copy() -> SecretBytes {
        withUnsafeBytes { SecretBytes(copying: $0) }
    }

    /// Tells whether both hold the same bytes, in a time that depends on their counts only.
    borrowing func isEqual(to other: borrowing SecretBytes) -> Bool {
        guard byteCount == other.byteCount else { return false }
        var difference: UInt8 = 0
        for index in 0..<byteCount {
            difference |= pages[index] ^ other.pages[index]
        }
        return difference == 0
    }
}
