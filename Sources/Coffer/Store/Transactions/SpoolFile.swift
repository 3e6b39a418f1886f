import CSQLCipher
import Synchronization

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

/// An unnamed file next to a store's, for bytes that go into the store later.
///
/// It vanishes with its descriptor, even in a crash. Only its owner may read it, and its contents
/// are encrypted under a key that is never written.
final class SpoolFile: Sendable {
    /// Bytes of each chunk.
    static let chunkByteCount = 1 << 20

    let descriptor: Int32
    private let sealer = ChunkSealer()
    private let state = Mutex(State())

    private struct State {
        /// The number of the next chunk.
        var count: UInt64 = 0
        var isDiscarded = false

        /// The system may have given the descriptor to another file since.
        func requireFile() throws(StoreError) {
            guard !isDiscarded else { throw StoreError(.misuse, "the spooled bytes are discarded") }
        }
    }

    /// Creates an empty file in the folder of a store's file.
    ///
    /// - Parameter hasUnnamed: Whether to ask the system for a file that never has a name;
    ///   otherwise it has one for a moment.
    /// - Throws: `.full` if the disk is full, `.io` if the file cannot be created.
    init(beside file: FileLocation, hasUnnamed: Bool = true) throws(StoreError) {
        var descriptor = hasUnnamed ? coffer_open_scratch(file.folder) : -1
        if descriptor < 0 {
            let suffix = KeyDerivation.randomSalt().prefix(6).map { String($0, radix: 36) }.joined()
            let path = "\(file.path).spool-\(suffix)"
            descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.failure("made") }
            unlink(path)
        }
        self.descriptor = descriptor
    }

    deinit {
        discard()
    }

    /// Gives the room on the disk back, whoever still holds this object. Afterwards no chunk can be
    /// written or read.
    func discard() {
        state.withLock { state in
            guard !state.isDiscarded else { return }
            state.isDiscarded = true
            close(descriptor)
        }
    }

    var chunkCount: Int { state.withLock { Int($0.count) } }

    /// Writes the next chunk, which has `chunkByteCount` bytes.
    ///
    /// - Throws: `.full` if the disk is full, `.io` if the file cannot be written; the file is then
    ///   unusable.
    func append(_ chunk: Data) throws(StoreError) {
        // Counted even if writing fails, so that no number is used twice.
        let number = try state.withLock { state throws(StoreError) in
            try state.requireFile()
            defer { state.count += 1 }
            return state.count
        }
        let sealed = try sealer.seal(chunk, number: number)
        let isWritten = sealed.withUnsafeBytes { bytes in
            PositionedIO.write(bytes, to: descriptor, at: Self.offset(of: number))
        }
        guard isWritten else { throw Self.failure("written") }
    }

    /// Reads a chunk back.
    ///
    /// - Parameter number: The number of the chunk, from 0.
    /// - Throws: `.io` if the chunk cannot be read, or if its bytes were changed on the disk.
    func chunk(_ number: Int) throws(StoreError) -> Data {
        try state.withLock { state throws(StoreError) in try state.requireFile() }
        var sealed = Data(count: Self.chunkByteCount + ChunkSealer.overhead)
        let count = sealed.withUnsafeMutableBytes { bytes in
            PositionedIO.read(
                into: bytes, from: descriptor, at: Self.offset(of: UInt64(number)))
        }
        guard let count else { throw Self.failure("read") }
        guard let chunk = sealer.open(sealed.prefix(count), number: UInt64(number)) else {
            throw StoreError(
                .io, "the bytes spooled for the blob were changed on the disk",
                hint: "Nothing was written to the store: write the blob again.")
        }
        return chunk
    }

    private static func offset(of number: UInt64) -> off_t {
        off_t(number) * off_t(chunkByteCount + ChunkSealer.overhead)
    }

    private static func failure(_ what: String) -> StoreError {
        let number = errno
        return StoreError(
            number == ENOSPC || number == EDQUOT ? .full : .io,
            "the file that the blob is spooled to could not be \(what): "
                + systemErrorText(number),
            hint: "It is next to the store and needs as much room as the blob.")
    }
}
