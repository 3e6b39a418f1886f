import Coffer
import Foundation
import Hummingbird
import ServiceLifecycle

/// The changes of a table as server-sent events.
///
/// The stream begins with a comment: every commit after it has its event.
struct ChangeStream: AsyncSequence, Sendable {
    let changes: ObservedChanges

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let changes: ObservedChanges.Iterator
        private var hasBegun = false

        fileprivate init(_ changes: ObservedChanges.Iterator) {
            self.changes = changes
        }

        mutating func next() async throws -> ByteBuffer? {
            guard hasBegun else {
                hasBegun = true
                return ByteBuffer(string: ": watching\n\n")
            }
            return try await changes.next().map { try ChangeStream.text(of: $0) }
        }
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(changes.makeAsyncIterator())
    }

    private struct Change: Encodable {
        let id: Int64
        let kind: String
    }

    private static func text(of event: ChangeEvent) throws -> ByteBuffer {
        switch event {
        case .commit(let rows):
            let changes = try rows.map { row in
                Change(id: try row.key(as: Int64.self), kind: "\(row.kind)")
            }
            let data = String(decoding: try JSONEncoder().encode(changes), as: UTF8.self)
            return ByteBuffer(string: "event: commit\ndata: \(data)\n\n")
        case .rescan(let reason):
            return ByteBuffer(string: "event: rescan\ndata: \"\(reason)\"\n\n")
        }
    }
}
