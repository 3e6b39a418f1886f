#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a file, from where it is open to its end.
struct FileBytes: AsyncSequence {
    private let file: OpenDescriptor

    /// Opens the file.
    ///
    /// - Throws: `.notFound` if the file does not exist; `.io` if the system cannot open it.
    init(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let reason = errno
            throw StoreError(
                reason == ENOENT ? .notFound : .io,
                "cannot open \(path): \(String(cString: strerror(reason)))")
        }
        file = OpenDescriptor(descriptor)
    }

    func makeAsyncIterator() -> Iterator { Iterator(file: file) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let file: OpenDescriptor

        /// Reads on a thread that may block.
        func next() async throws -> Data? {
            try await Store.offPool { [file] () throws(StoreError) in try file.read() }
        }
    }
}

private final class OpenDescriptor: Sendable {
    private let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// The next bytes; `nil` at the end.
    func read() throws(StoreError) -> Data? {
        var bytes = Data(count: Contents.chunkByteCount)
        let (count, reason) = bytes.withUnsafeMutableBytes { buffer in
            while true {
                #if canImport(Darwin)
                let count = Darwin.read(descriptor, buffer.baseAddress, buffer.count)
                #elseif canImport(Glibc)
                let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                #elseif canImport(Musl)
                let count = Musl.read(descriptor, buffer.baseAddress, buffer.count)
                #endif
                if count >= 0 || errno != EINTR { return (count, errno) }
            }
        }
        guard count >= 0 else {
            throw StoreError(.io, "cannot read the file: \(String(cString: strerror(reason)))")
        }
        return count == 0 ? nil : bytes.prefix(count)
    }
}
