/// Secret bytes with one owner.
///
/// They live in their own memory pages, which are locked and left out of core dumps as far as the
/// system allows. The pages are zeroed when the value ends. The type has no description, no coding
/// and no `==`: a secret can only be read inside a closure that it is lent to.
package struct SecretBytes: ~Copyable, @unchecked Sendable {
    // Unchecked because of the pointer. Sharing is safe: only the initialiser and `deinit` write
    // the memory, and `~Copyable` lets neither overlap with a reader.
    /// Whole locked pages; the secret is at their start.
    private let pages: UnsafeMutableRawBufferPointer

    /// How many bytes the secret has. The count is not secret.
    package let byteCount: Int

    /// Creates a secret from the bytes that `body` writes.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes, 0 or more.
    ///   - body: Writes the bytes, which are zero at first. If it throws, they are zeroed at once.
    package init<E: Error>(
        byteCount: Int, initializing body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        let pages = LockedMemory.allocate(byteCount: byteCount)
        do throws(E) {
            try body(UnsafeMutableRawBufferPointer(rebasing: pages[..<byteCount]))
        } catch {
            LockedMemory.free(pages, wiping: byteCount)
            throw error
        }
        self.pages = pages
        self.byteCount = byteCount
    }

    /// Creates a secret with the same bytes; the caller wipes the source.
    package init(copying bytes: UnsafeRawBufferPointer) {
        self.init(byteCount: bytes.count) { $0.copyMemory(from: bytes) }
    }

    /// Creates a secret from a collection, without an array in between; the caller wipes the
    /// source.
    package init(_ bytes: some Collection<UInt8>) {
        self.init(byteCount: bytes.count) { $0.copyBytes(from: bytes) }
    }

    deinit {
        LockedMemory.free(pages, wiping: byteCount)
    }

    /// Lends the bytes to `body`, which must not keep the pointer.
    package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(rebasing: pages[..<byteCount]))
    }

    /// Returns a second secret with the same bytes and its own lifetime.
    package borrowing func copy() -> SecretBytes {
        withUnsafeBytes { SecretBytes(copying: $0) }
    }

    /// Whether both hold the same bytes. The time depends on their counts only.
    package borrowing func isEqual(to other: borrowing SecretBytes) -> Bool {
        guard byteCount == other.byteCount else { return false }
        var difference: UInt8 = 0
        for index in 0..<byteCount {
            difference |= pages[index] ^ other.pages[index]
        }
        return difference == 0
    }
}
