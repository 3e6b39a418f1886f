/// The format of SQLite's WAL: which frames are intact, which of them commit, and their pages.
///
/// See <https://www.sqlite.org/fileformat2.html#the_wal_file_format>.
struct WriteAheadLog {
    /// "0: Magic number … 4: File format version … 8: Database page size … 12: Checkpoint sequence
    /// number … 16: Salt-1 … 20: Salt-2 … 24: Checksum-1 … 28: Checksum-2"
    static let headerByteCount = 32
    /// "0: Page number … 4: For commit records, the size of the database file in pages … 8: Salt-1
    /// … 12: Salt-2 … 16: Checksum-1 … 20: Checksum-2"
    static let frameHeaderByteCount = 24

    let pageByteCount: Int
    /// Both salts, which every frame of this WAL repeats in its header.
    let salt: ArraySlice<UInt8>
    private var checksum: WALChecksum

    /// Reads the header; `nil` if it is not a WAL header or its checksum is wrong.
    init?(header: [UInt8]) {
        let magic = Self.bigEndian(header[0...])
        guard header.count == Self.headerByteCount, magic & ~1 == 0x377f_0682 else { return nil }
        // "If the least significant bit of the magic number is 1, the checksum words are read as
        // big-endian"
        pageByteCount = Int(Self.bigEndian(header[8...]))
        salt = header[16..<24]
        checksum = WALChecksum(isBigEndian: magic & 1 == 1)
        checksum.add(header[0..<24])
        guard checksum.words == (Self.bigEndian(header[24...]), Self.bigEndian(header[28...]))
        else {
            return nil
        }
    }

    var frameByteCount: Int { Self.frameHeaderByteCount + pageByteCount }

    /// Offset of a frame, counted from 0.
    func offset(ofFrame index: Int) -> Int {
        Self.offset(ofFrame: index, pageByteCount: pageByteCount)
    }

    /// Offset of a frame, counted from 0.
    static func offset(ofFrame index: Int, pageByteCount: Int) -> Int {
        headerByteCount + index * (frameHeaderByteCount + pageByteCount)
    }

    /// The page that the next frame holds; `nil` if the frame's salt or the running checksum is
    /// wrong.
    ///
    /// Frames must come in order. If only the frame's stored checksum is wrong, the frames after it
    /// still match the running checksum.
    mutating func page(ofNextFrame frame: [UInt8]) -> (number: Int, content: ArraySlice<UInt8>)? {
        guard frame.count == frameByteCount, hasSalt(frame[...]) else { return nil }
        checksum.add(frame[0..<8])
        checksum.add(frame[Self.frameHeaderByteCount...])
        guard checksum.words == (Self.bigEndian(frame[16...]), Self.bigEndian(frame[20...])) else {
            return nil
        }
        return (Self.pageNumber(ofFrame: frame[...]), frame[Self.frameHeaderByteCount...])
    }

    /// The page number in a frame's header, which may be damaged.
    static func pageNumber(ofFrame header: ArraySlice<UInt8>) -> Int {
        Int(bigEndian(header))
    }

    /// Whether a frame belongs to this WAL, and not to an earlier one in the same file.
    func hasSalt(_ frame: ArraySlice<UInt8>) -> Bool {
        FrameHeader(frame).salt.elementsEqual(salt)
    }

    /// The fields of a frame's header, which may be damaged.
    struct FrameHeader {
        let pageNumber: Int
        /// Pages of the database after the commit; 0 in a frame that does not commit.
        let pageCount: Int
        let salt: ArraySlice<UInt8>

        init(_ frame: ArraySlice<UInt8>) {
            pageNumber = WriteAheadLog.pageNumber(ofFrame: frame)
            pageCount = Int(WriteAheadLog.bigEndian(frame.dropFirst(4)))
            salt = frame.dropFirst(8).prefix(8)
        }

        var isCommit: Bool { pageCount != 0 }
    }

    fileprivate static func bigEndian(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// The checksum of the WAL and of the WAL index.
///
/// See <https://www.sqlite.org/fileformat2.html#checksum_algorithm>.
struct WALChecksum: Equatable {
    let isBigEndian: Bool
    private(set) var words: (UInt32, UInt32) = (0, 0)

    init(isBigEndian: Bool) {
        self.isBigEndian = isBigEndian
    }

    /// Goes on from a checksum as the WAL stores it: two big-endian words.
    init(isBigEndian: Bool, after stored: ArraySlice<UInt8>) {
        self.isBigEndian = isBigEndian
        words = (
            WriteAheadLog.bigEndian(stored), WriteAheadLog.bigEndian(stored.dropFirst(4))
        )
    }

    static func == (one: WALChecksum, other: WALChecksum) -> Bool {
        one.words == other.words && one.isBigEndian == other.isBigEndian
    }

    /// "s0 += x(i) + s1; s1 += x(i+1) + s0" over pairs of 32-bit words.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { bytes in
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                let first = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                let second = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                words.0 &+= ordered(first) &+ words.1
                words.1 &+= ordered(second) &+ words.0
            }
        }
    }

    private func ordered(_ word: UInt32) -> UInt32 {
        isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }
}
