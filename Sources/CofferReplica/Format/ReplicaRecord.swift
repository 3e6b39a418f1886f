import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The content of a record, which only a holder of the file's key reads: a summary, and a body.
///
/// The summary is encrypted by itself, so that a history can be searched without its pages.
///
/// | Offset | Bytes of the summary | |
/// |--:|--:|---|
/// | 0 | 8 | milliseconds since 1970, by the owner's clock |
/// | 8 | 8 | the same by the remote's clock, as it was last told; 0 if it never was |
/// | 16 | 8 | the salts of the WAL |
/// | 24 | 4 | how many of its frames are in the replica |
/// | 28 | 8 | the checksum of the last of these frames |
/// | 36 | 4 | pages of the file after the record |
/// | 40 | 16 | digest of all its pages |
/// | 56 | 1 | bit 0: a commit ends here |
/// | 57 | 3 | zeros |
/// | 60 | 4 | bytes of the note: JSON, as `Note` |
/// | 64 | 4 | pages of the record |
/// | 68 | 4 | bytes of a page; 0 without pages |
///
/// The body has the note, the page numbers of 4 bytes each, and the pages.
struct ReplicaRecord: Equatable, Sendable {
    /// How far the WAL is in the replica.
    struct LogPlace: Equatable, Sendable {
        /// Both salts of the WAL: 8 bytes.
        var salt: [UInt8]
        var frameCount: UInt32
        /// The running checksum after the last frame: 8 bytes.
        var checksum: [UInt8]

        /// Before the first commit that a replica has seen.
        static let none = LogPlace(
            salt: [UInt8](repeating: 0, count: 8), frameCount: 0,
            checksum: [UInt8](repeating: 0, count: 8))
    }

    /// Facts that only some kinds of records carry.
    struct Note: Equatable, Sendable, Codable {
        /// Of `begin` and `takeover`: who owns the term.
        var owner: String?
        /// Of `begin`: how long the owner lets commits wait, in milliseconds.
        var interval: Int?
        /// Of `begin`: whether the term begins with no page, and all pages of the file follow. A
        /// restore begins at such a term.
        var isWhole: Bool?
        /// Of each record: the last snapshot before it.
        var snapshot: Slot?
        /// Of each record: the last term up to it that began with no page; of the first record of
        /// such a term, the one before.
        var wholeTerm: UInt64?
        /// Of each record, if the store has a keyring: which one, and the key of the pages.
        var keyring: KeyringNote?
        /// Of `snapshot`: its parts, and what is kept of the time before it.
        var index: SnapshotIndex?

        fileprivate static let none = Note()
    }

    /// A page as it is in the file, still encrypted.
    struct Page: Equatable, Sendable {
        let number: UInt32
        /// A part of the bytes of all pages that were read with it.
        let bytes: ArraySlice<UInt8>
    }

    var time: Date
    var remoteTime: Date?
    var place = LogPlace.none
    var pageCount: UInt32 = 0
    var digest: UInt128 = 0
    var endsCommit = true
    var note = Note.none
    var pages: [Page] = []

    /// The most bytes of pages and their numbers that a record has.
    static let maximumPageByteCount = 8 << 20

    /// The most pages that a record has, with their numbers of 4 bytes each.
    static func pageCountMax(pageByteCount: Int) -> Int {
        max(1, maximumPageByteCount / (pageByteCount + 4))
    }

    static let summaryByteCount = 72

    /// Whether the whole file had these pages when the record ended a commit.
    ///
    /// The first record of a term that sends all pages has none, and says nothing of the file.
    func describes(_ tags: PageTags) -> Bool {
        endsCommit && pageCount > 0 && tags.count == Int(pageCount) && tags.digest == digest
    }
}

extension ReplicaRecord.Page {
    /// Pages that lie one after the other.
    static func list(
        _ numbers: some Sequence<UInt32>, _ bytes: ArraySlice<UInt8>, _ byteCount: Int
    ) -> [Self] {
        var start = bytes.startIndex
        return numbers.map { number in
            defer { start += byteCount }
            return Self(number: number, bytes: bytes[start..<start + byteCount])
        }
    }
}

extension ReplicaRecord {
    /// The two parts of a record that are encrypted.
    struct Content: Equatable {
        var summary: [UInt8]
        var body: [UInt8]
    }

    /// When it was sent: by the owner's clock, or by the remote's if they differ by more than a
    /// minute. A clock that was once wrong must not end restoring by time.
    var moment: Date {
        guard let remoteTime, abs(remoteTime.timeIntervalSince(time)) > 60 else { return time }
        return remoteTime
    }

    var content: Content {
        get throws(StoreError) {
            let note: [UInt8]
            do {
                note = self.note == .none ? [] : Array(try JSONEncoder().encode(self.note))
            } catch {
                throw StoreError(.engine, "the note of a record cannot be written", cause: error)
            }
            let pageByteCount = pages.first?.bytes.count ?? 0
            var bytes: [UInt8] = []
            bytes.reserveCapacity(Self.summaryByteCount)
            bytes += Self.milliseconds(time).bigEndianBytes
            bytes += (remoteTime.map(Self.milliseconds) ?? 0).bigEndianBytes
            bytes += place.salt + place.frameCount.bigEndianBytes + place.checksum
            bytes += pageCount.bigEndianBytes + digest.bigEndianBytes
            bytes += [endsCommit ? 1 : 0, 0, 0, 0]
            bytes += UInt32(note.count).bigEndianBytes + UInt32(pages.count).bigEndianBytes
            bytes += UInt32(pageByteCount).bigEndianBytes
            var body = note
            body.reserveCapacity(note.count + pages.count * (4 + pageByteCount))
            for page in pages { body += page.number.bigEndianBytes }
            for page in pages { body += page.bytes }
            return Content(summary: bytes, body: body)
        }
    }

    /// Reads the summary of a record, without its note and its pages; `nil` if no version of Coffer
    /// writes such bytes.
    init?(summary bytes: [UInt8]) {
        guard bytes.count == Self.summaryByteCount, bytes[56] < 2,
            bytes[57..<60].allSatisfy({ $0 == 0 })
        else { return nil }
        time = Self.date(UInt64(bigEndianAt: 0, of: bytes))
        let remote = UInt64(bigEndianAt: 8, of: bytes)
        remoteTime = remote == 0 ? nil : Self.date(remote)
        place = LogPlace(
            salt: Array(bytes[16..<24]), frameCount: UInt32(bigEndianAt: 24, of: bytes),
            checksum: Array(bytes[28..<36]))
        pageCount = UInt32(bigEndianAt: 36, of: bytes)
        digest = UInt128(bigEndianAt: 40, of: bytes)
        endsCommit = bytes[56] == 1
    }

    /// Reads the content of a record; `nil` if no version of Coffer writes such bytes.
    init?(_ content: Content) {
        self.init(summary: content.summary)
        let (bytes, body) = (content.summary, content.body)
        let noteByteCount = Int(UInt32(bigEndianAt: 60, of: bytes))
        let pageTotal = Int(UInt32(bigEndianAt: 64, of: bytes))
        let pageByteCount = Int(UInt32(bigEndianAt: 68, of: bytes))
        // No product can overflow: each factor has 32 bits.
        guard pageByteCount <= 65_536, (pageTotal == 0) == (pageByteCount == 0),
            body.count == noteByteCount + pageTotal * (4 + pageByteCount)
        else { return nil }
        if noteByteCount > 0 {
            let json = Data(body[..<noteByteCount])
            guard let note = try? JSONDecoder().decode(Note.self, from: json) else { return nil }
            self.note = note
        }
        let pagesStart = noteByteCount + 4 * pageTotal
        let numbers = (0..<pageTotal).lazy.map { index in
            UInt32(bigEndianAt: noteByteCount + 4 * index, of: body)
        }
        pages = Page.list(numbers, body[pagesStart...], pageByteCount)
    }

    private static func milliseconds(_ date: Date) -> UInt64 {
        UInt64(max(0, (date.timeIntervalSince1970 * 1000).rounded()))
    }

    private static func date(_ milliseconds: UInt64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}
