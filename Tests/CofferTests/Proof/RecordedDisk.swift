import CFileRecorder
import Foundation
import Workload

/// The changes of files in a folder, as `CFileRecorder` wrote them down, and what a kill or a power
/// loss after some of them leaves.
///
/// Of a write that was not synced, a power loss leaves any of its sectors. Of the changes of names
/// since a folder was synced, it leaves the first ones: file systems keep their order.
struct RecordedDisk {
    struct Change {
        let kind: recorder_kind
        let path: String
        let other: String
        let bytes: [UInt8]
        let offset: Int
    }

    let changes: [Change]
    private let files: [String: [UInt8]]
    /// For tests of tests: nothing is ever synced.
    var ignoresSyncs = false

    /// - Parameters:
    ///   - files: The content of the folder before the first change, by name.
    ///   - record: The path of the record.
    init(_ files: [String: [UInt8]], record: String, of folder: URL) throws {
        self.files = files
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: record)))
        let prefix = folder.path + "/"
        var changes: [Change] = []
        var rest = bytes[...]
        while rest.count >= 24 {
            let entry = Array(rest.prefix(24))
            func number(_ range: Range<Int>) -> Int {
                range.reversed().reduce(0) { $0 << 8 | Int(entry[$1]) }
            }
            rest = rest.dropFirst(24)
            func take(_ count: Int) -> [UInt8] {
                defer { rest = rest.dropFirst(count) }
                return Array(rest.prefix(count))
            }
            func name(_ bytes: [UInt8]) -> String {
                let path = String(decoding: bytes, as: UTF8.self)
                return path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path
            }
            let (path, other) = (name(take(number(2..<4))), name(take(number(4..<6))))
            changes.append(
                Change(
                    kind: recorder_kind(UInt32(entry[0])), path: path, other: other,
                    bytes: take(number(8..<16)), offset: number(16..<24)))
        }
        guard rest.isEmpty else { throw WorkloadError("the record ends within a change") }
        self.changes = changes
    }

    /// The number of the change before which the program wrote this text into the record; `nil` if
    /// it did not.
    func number(ofMark text: String) -> Int? {
        changes.firstIndex { $0.kind == recorder_mark_text && $0.path == text }
    }

    // MARK: Replaying

    /// A file, under all of its names.
    fileprivate final class Node {
        var durable: [UInt8]
        var current: [UInt8]

        init(_ bytes: [UInt8]) {
            durable = bytes
            current = bytes
        }
    }

    /// Fills an empty folder with the files as they are after the first `count` changes.
    ///
    /// - Parameter random: Chooses what a power loss leaves; `nil` for a kill, which loses nothing.
    func write(
        to folder: URL, after count: Int, lossBy random: inout SeededGenerator?
    ) throws {
        var names = files.mapValues { Node($0) }
        var durableNames = names
        var pending: [[String: Node?]] = []
        for change in changes.prefix(count) {
            switch change.kind {
            case recorder_mark_text, recorder_failure:
                continue
            case recorder_sync_folder where ignoresSyncs:
                continue
            case recorder_sync_folder:
                durableNames = names
                pending = []
            case recorder_create, recorder_rename, recorder_link, recorder_unlink:
                let naming = try Self.naming(change, names)
                names.merge(naming)
                pending.append(naming)
            default:
                apply(change, to: try Self.node(change.path, names))
            }
        }
        if random != nil {
            let count = random?.below(pending.count + 1) ?? 0
            names = durableNames
            for naming in pending.prefix(count) { names.merge(naming) }
        }
        // A file has several names for a moment while another takes its place.
        var written: [ObjectIdentifier: URL] = [:]
        // The system that comes up again has no index of a WAL.
        for name in names.keys.sorted() where !name.hasSuffix("-shm") {
            guard let node = names[name] else { continue }
            let place = folder.appending(path: name)
            if let first = written[ObjectIdentifier(node)] {
                try FileManager.default.linkItem(at: first, to: place)
                continue
            }
            try Data(Self.remains(node, by: &random)).write(to: place)
            written[ObjectIdentifier(node)] = place
        }
    }

    private static func node(_ name: String, _ names: [String: Node]) throws -> Node {
        guard let node = names[name] else {
            throw WorkloadError("\(name) is changed and not there")
        }
        return node
    }

    /// Translates a change into names and the files that they lead to afterwards. A name that was
    /// removed leads to `nil`.
    private static func naming(
        _ change: Change, _ names: [String: Node]
    ) throws -> [String: Node?] {
        switch change.kind {
        case recorder_create: [change.path: Node([])]
        case recorder_link: [change.other: try node(change.path, names)]
        case recorder_rename: [change.path: nil, change.other: try node(change.path, names)]
        default: [change.path: nil]
        }
    }

    private func apply(_ change: Change, to node: Node) {
        switch change.kind {
        case recorder_write:
            let end = change.offset + change.bytes.count
            if node.current.count < end {
                node.current += [UInt8](repeating: 0, count: end - node.current.count)
            }
            node.current.replaceSubrange(change.offset..<end, with: change.bytes)
        case recorder_truncate:
            let surplus = node.current.count - change.offset
            if surplus > 0 {
                node.current.removeLast(surplus)
            } else {
                node.current += [UInt8](repeating: 0, count: -surplus)
            }
        default:
            if !ignoresSyncs { node.durable = node.current }
        }
    }

    private static func remains(_ node: Node, by random: inout SeededGenerator?) -> [UInt8] {
        let (old, new) = (node.durable, node.current)
        guard var generator = random, old != new else { return new }
        defer { random = generator }
        // A third each leaves nothing, everything or arbitrary sectors of what was written.
        let style = generator.below(3)
        guard style == 2 else { return style == 0 ? old : new }
        let count = generator.below(2) == 0 ? old.count : new.count
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: count, by: 512) {
            let end = min(start + 512, count)
            let source = generator.below(2) == 0 ? old : new
            let part = start < source.count ? source[start..<min(end, source.count)] : []
            bytes += part + [UInt8](repeating: 0, count: end - start - part.count)
        }
        return bytes
    }
}

extension SeededGenerator {
    fileprivate mutating func below(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self)
    }
}

extension [String: RecordedDisk.Node] {
    fileprivate mutating func merge(_ naming: [String: RecordedDisk.Node?]) {
        for (name, node) in naming { self[name] = node }
    }
}
