import CWorkload
public import Foundation

/// The record of W1 to W4 and W6: a plain struct of ten properties.
@frozen public struct Item: Codable, Sendable {
    public var id: Int64
    public var name: String
    public var url: String
    public var kind: String
    public var x: Double
    public var y: Double
    public var created: Date
    public var flag: Bool
    public var note: String?
    public var data: Data

    @inlinable public init(
        id: Int64, name: String, url: String, kind: String, x: Double, y: Double, created: Date,
        flag: Bool, note: String?, data: Data
    ) {
        self.id = id
        self.name = name
        self.url = url
        self.kind = kind
        self.x = x
        self.y = y
        self.created = created
        self.flag = flag
        self.note = note
        self.data = data
    }
}

extension Item {
    /// The items `range`, with the values that C makes for them.
    public static func make(_ range: ClosedRange<Int>, version: Int32 = 1) -> [Item] {
        let count = Int64(range.count)
        // Owned here, and copied before it is freed.
        guard let records = bench_records_make(Int64(range.lowerBound), count, version) else {
            return []
        }
        defer { bench_records_free(records, count) }
        return (0..<range.count).map { Item(records[$0]) }
    }

    private init(_ record: bench_record) {
        self.init(
            id: record.id, name: record.name.text ?? "", url: record.url.text ?? "",
            kind: record.kind.text ?? "", x: record.x, y: record.y,
            created: Date(timeIntervalSince1970: record.created), flag: record.flag,
            note: record.note.text, data: Self.data(record.data))
    }

    private static func data(_ bytes: bench_bytes) -> Data {
        bytes.bytes.map { Data(bytes: $0, count: Int(bytes.count)) } ?? Data()
    }
}

extension bench_bytes {
    /// `nil` for NULL.
    var text: String? {
        bytes.map {
            let buffer = UnsafeRawBufferPointer(start: $0, count: Int(count))
            return String(decoding: buffer, as: UTF8.self)
        }
    }
}

/// The entries of W5.
public struct Entry: Sendable {
    public let key: Data
    public let value: Data

    public init(key: Data, value: Data) {
        self.key = key
        self.value = value
    }

    /// The first entries, with the values that C makes for them.
    public static func make(_ count: Int) -> [Entry] {
        // Owned here, and copied before it is freed.
        guard let entries = bench_entries_make(Int64(count), 1) else { return [] }
        defer { free(entries) }
        return (0..<count).map { index in
            withUnsafeBytes(of: entries[index]) { bytes in
                Entry(key: Data(bytes[..<16]), value: Data(bytes[16..<116]))
            }
        }
    }

    /// Entries with a blob of a megabyte each.
    public static func blobs(_ count: Int) -> [Entry] {
        make(count).enumerated().map { index, entry in
            guard let blob = bench_blob_make(1_000_000, Int64(index)) else { return entry }
            defer { free(blob) }
            return Entry(key: entry.key, value: Data(bytes: blob, count: 1_000_000))
        }
    }
}
