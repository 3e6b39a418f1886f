import CWorkload
import Coffer
import Crypto
import Foundation
import Workloads

/// One attachment of so many MB, in and out as a stream.
struct Attachments {
    let run: Run
    private let films = AttachmentBucket<Int>("films")

    init(_ run: Run) { self.run = run }

    /// Lends the bytes in pieces, as a file or the network gives them.
    private struct Pieces: AsyncSequence {
        let bytes: Data

        func makeAsyncIterator() -> Iterator { Iterator(rest: bytes) }

        struct Iterator: AsyncIteratorProtocol {
            var rest: Data

            mutating func next() async -> Data? {
                guard !rest.isEmpty else { return nil }
                let piece = rest.prefix(256 << 10)
                rest = rest.dropFirst(piece.count)
                return piece
            }
        }
    }

    func put() async throws {
        try await transfer { store, bytes, digest in
            try await run.sample(written: check(digest)) {
                try await store.set(contentsOf: Pieces(bytes: bytes), for: 1, in: films)
            } check: {
                check($0.sha256)
            }
        }
    }

    func get() async throws {
        try await transfer { store, bytes, digest in
            try await store.set(contentsOf: Pieces(bytes: bytes), for: 1, in: films)
            try await store.close()
            let store = try run.openStore()
            try await run.sample(written: check(digest)) {
                var byteCount = 0
                // The loop compares the digest itself.
                for try await chunk in store.chunks(of: 1, in: films) { byteCount += chunk.count }
                return byteCount
            } check: { byteCount in
                guard byteCount == bytes.count else { return Check() }
                return try await check(store.attachment(1, in: films)?.sha256)
            }
            try await store.close()
        }
    }

    private func check(_ sha256: Data?) -> Check {
        var check = Check()
        check.add(Data(), sha256 ?? Data())
        return check
    }

    /// Calls `body` with a new store, the bytes and their digest.
    private func transfer(
        _ body: (Store, Data, Data) async throws -> Void
    ) async throws {
        let count = run.rows * 1_000_000
        guard let made = bench_blob_make(Int64(count), 1) else { throw Missing() }
        let bytes = Data(bytesNoCopy: made, count: count, deallocator: .free)
        let digest = Data(SHA256.hash(data: bytes))
        for _ in 0..<run.repeats {
            run.removeFile()
            let store = try run.openStore()
            try await body(store, bytes, digest)
            try await store.close()
        }
    }
}
