#if os(Linux)
import Foundation

@testable import Coffer

/// Opens a store by a passphrase of its keyring, changes slots, closes it, and looks for its
/// secrets in the memory of this process.
///
/// - Returns: How often each secret is there after the store was closed.
func lookForSecretsOfKeyring() throws -> String {
    let path = next()
    var configuration = configuration("wal")
    configuration.keyCost = KeyCost(log2N: 14, parallelism: 1)
    let secrets = try useKeyring(path, configuration)
    return "closed \(try counts(secrets))"
}

/// A secret in a form that no search for it finds.
private struct Masked {
    static let mask: UInt8 = 0x5a
    let name: String
    let bytes: [UInt8]

    init(_ name: String, _ secret: UnsafeRawBufferPointer) {
        self.name = name
        bytes = secret.map { $0 ^ Self.mask }
    }
}

private func useKeyring(_ path: String, _ configuration: Configuration) throws -> [Masked] {
    let store = try Store(
        path: path, key: .keyring(.passphrase("open sesame")), configuration: configuration)
    try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
    try store.keys.addRecoveryKey(label: "") { letters in Array(letters) }
    try store.keys.change(2, to: .keyFile([UInt8](repeating: 3, count: 32)))
    let secrets = try secrets(of: store)
    _ = try store.read { tx in try tx.rows("SELECT * FROM t").count }
    say("open \(try counts(secrets))")
    try store.close()
    return secrets
}

private func secrets(of store: Store) throws -> [Masked] {
    let keyring = try store.keys.open()
    let root = try keyring.root()
    let content = try keyring.current().content
    let dataKey = root.key.dataKey(epoch: content.epoch, id: content.id)
    var found = [
        root.key.bytes.withUnsafeBytes { Masked("root", $0) },
        dataKey.bytes.withUnsafeBytes { Masked("key", $0) },
        dataKey.withKeyText { Masked("digits", UnsafeRawBufferPointer($0)) },
    ]
    if let derivation = content.slots.lazy.compactMap({ Derivation(of: $0) }).first {
        let derived = try derivation.secret(of: SecretBytes(Array("open sesame".utf8)))
        found.append(derived.withUnsafeBytes { Masked("derived", $0) })
    }
    found.append(try store.keys.withRootBackup { Masked("letters", $0) })
    return found
}

private func counts(_ secrets: [Masked]) throws -> String {
    let counts = try MemoryOfProcess().counts(secrets.map(\.bytes))
    return zip(secrets, counts).map { "\($0.name) \($1)" }.joined(separator: ", ")
}

/// All memory that this process may write, also what nobody has allocated.
private struct MemoryOfProcess {
    private static let chunkByteCount = 1 << 20

    func counts(_ masked: [[UInt8]]) throws -> [Int] {
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw CocoaError(.fileReadUnknown) }
        defer { close(memory) }
        let longest = masked.map(\.count).max() ?? 0
        let chunk = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.chunkByteCount + longest, alignment: 16)
        defer { chunk.deallocate() }
        guard let buffer = chunk.baseAddress else { throw CocoaError(.fileReadUnknown) }
        var counts = masked.map { _ in 0 }
        for range in try writable() {
            var address = range.lowerBound
            while address < range.upperBound {
                let wanted = min(chunk.count, range.upperBound - address)
                let read = pread(memory, buffer, wanted, off_t(address))
                guard read > 0 else { break }
                // Each occurrence counts in the chunk in which it begins.
                let beginnings = min(read, Self.chunkByteCount)
                for (index, secret) in masked.enumerated() {
                    counts[index] += Self.count(
                        secret, in: UnsafeRawBufferPointer(rebasing: chunk[..<read]),
                        before: beginnings)
                }
                memset(buffer, 0, chunk.count)
                address += Self.chunkByteCount
            }
        }
        return counts
    }

    private func writable() throws -> [Range<Int>] {
        let text = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 1, words[1].hasPrefix("rw") else { return nil }
            let ends = words[0].split(separator: "-").compactMap { Int($0, radix: 16) }
            return ends.count == 2 ? ends[0]..<ends[1] : nil
        }
    }

    private static func count(
        _ masked: [UInt8], in bytes: UnsafeRawBufferPointer, before end: Int
    ) -> Int {
        guard let base = bytes.baseAddress else { return 0 }
        let first = Int32(masked[0] ^ Masked.mask)
        let last = min(end, bytes.count - masked.count + 1)
        var count = 0
        var position = 0
        while position < last, let found = memchr(base + position, first, last - position) {
            let start = UnsafeRawPointer(found) - base
            if masked.indices.allSatisfy({ bytes[start + $0] ^ Masked.mask == masked[$0] }) {
                count += 1
            }
            position = start + 1
        }
        return count
    }
}
#endif
