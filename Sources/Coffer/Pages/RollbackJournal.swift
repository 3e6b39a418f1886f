/// The header of SQLite's rollback journal, and the places of the pages behind it.
///
/// See <https://www.sqlite.org/fileformat2.html#the_rollback_journal>.
struct RollbackJournal {
    /// "0: Header string: 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7"
    static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    static let headerByteCount = 28

    /// "20: Size of a disk sector assumed by the process that wrote this journal": the first page
    /// record follows at that offset.
    let sectorByteCount: Int
    /// "24: Size of pages in this journal"
    let pageByteCount: Int

    /// Reads the header; `nil` for bytes without the magic. A header that a power loss cut short
    /// has zeros.
    init?(header: [UInt8]) {
        guard header.count == Self.headerByteCount, header.starts(with: Self.magic) else {
            return nil
        }
        sectorByteCount = Int(UInt32(bigEndianAt: 20, of: header))
        pageByteCount = Int(UInt32(bigEndianAt: 24, of: header))
    }

    /// "0: The page number in the database file … 4: Original content of the page prior to the
    /// start of the transaction … N+4: Checksum"
    static let pageNumberByteCount = 4
    var recordByteCount: Int { Self.pageNumberByteCount + pageByteCount + 4 }
}
