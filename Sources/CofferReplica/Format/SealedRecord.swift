import Coffer
import Crypto

/// A record as a remote keeps it: the header in the clear, and the encrypted content.
struct SealedRecord: Sendable {
    let bytes: [UInt8]
    /// SHA-256 of all bytes, which the next record has.
    let hash: [UInt8]
    let slot: Slot
    /// The name of the object.
    let name: String

    /// - Parameter name: Of the object; that of the slot for a record of the log.
    init(_ bytes: [UInt8], at slot: Slot, name: String? = nil) {
        (self.bytes, self.slot, self.name) = (bytes, slot, name ?? slot.name)
        hash = Self.hash(of: bytes)
    }

    /// Encrypts a record.
    ///
    /// - Parameters:
    ///   - name: Of the object; that of the slot for a record of the log.
    ///   - previous: The hash of the record before.
    init(
        _ kind: RecordKind, _ record: consuming ReplicaRecord, at slot: Slot, name: String? = nil,
        after previous: [UInt8], by keys: ReplicaKeys
    ) throws(StoreError) {
        let name = name ?? slot.name
        let content = try record.content
        // Ends the life of the pages, of which `content` has a copy.
        _ = consume record
        let header = RecordHeader(
            kind, in: keys.replica, at: slot, keyID: keys.id,
            seed: keys.newSeed(for: content), after: previous)
        (self.slot, self.name) = (slot, name)
        var bytes = header.bytes
        try keys.seal(content.summary, .summary, of: name, behind: &bytes, seed: header.seed)
        try keys.seal(content.body, .body, of: name, behind: &bytes, seed: header.seed)
        hash = Self.hash(of: bytes)
        self.bytes = bytes
    }

    static func hash(of bytes: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: bytes)) }

    /// The bytes of an object that its header and its summary take.
    static let summaryRange =
        0..<RecordHeader.byteCount + ReplicaRecord.summaryByteCount + ReplicaKeys.overhead

    var header: RecordHeader {
        get throws(StoreError) { try RecordHeader(bytes, at: slot) }
    }

    /// Decrypts the record.
    ///
    /// - Throws: `.wrongKey` for a record under another key; `.remoteOfAnotherStore` for a record
    ///   of another replica; `.remoteDamaged` for bytes that nobody with the key wrote there.
    func open(by keys: ReplicaKeys) throws(StoreError) -> (RecordHeader, ReplicaRecord) {
        let (header, summary) = try openSummary(by: keys)
        let end = Self.summaryRange.upperBound
        guard
            let body = keys.open(
                bytes[end...], .body, of: name, after: Array(bytes[..<end]),
                seed: header.seed),
            let record = ReplicaRecord(.init(summary: summary, body: body))
        else { throw damaged }
        return (header, record)
    }

    /// Decrypts the summary of a record, of which the bytes after it may be missing.
    ///
    /// - Returns: The record without its note and its pages.
    /// - Throws: As `open`.
    func summary(by keys: ReplicaKeys) throws(StoreError) -> (RecordHeader, ReplicaRecord) {
        let (header, bytes) = try openSummary(by: keys)
        guard let record = ReplicaRecord(summary: bytes) else { throw damaged }
        return (header, record)
    }

    private func openSummary(
        by keys: ReplicaKeys
    ) throws(StoreError) -> (RecordHeader, [UInt8]) {
        let header = try header
        guard header.replica == keys.replica else {
            throw StoreError(
                .remoteOfAnotherStore, "\(name) is a record of another replica",
                hint: "Somebody has copied objects between remotes: name the right remote.")
        }
        guard header.keyID == keys.id else {
            throw StoreError(
                .wrongKey, "the key is not that of the replica: \(name) has another one",
                hint: keys.otherKeyHint)
        }
        guard bytes.count >= Self.summaryRange.upperBound,
            let summary = keys.open(
                bytes[RecordHeader.byteCount..<Self.summaryRange.upperBound], .summary,
                of: name, after: header.bytes, seed: header.seed)
        else { throw damaged }
        return (header, summary)
    }

    private var damaged: StoreError {
        StoreError(
            .remoteDamaged, "\(name) is not as its owner wrote it",
            hint: "Somebody has changed the object, or the service has damaged it.")
    }
}
