#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that is read as it lies, without locks, as long as nobody changes it.
///
/// The engine reads it as `immutable`, and then neither asks for nor makes anything beside it.
/// "Setting the immutable property on a database file that does in fact change can result in
/// incorrect query results": <https://www.sqlite.org/c3ref/open.html>. So every probe asks whether
/// it did, before what was read is handed out. A checkpoint or a rollback writes to the main file;
/// a commit in WAL mode gives the log content.
struct FileAtRest {
    let file: FileLocation
    /// The mode that the header names; the engine itself says `delete` of such a file.
    let journalMode: Configuration.JournalMode
    private let stamp: Stamp

    /// Tells whether anything was written.
    private struct Stamp: Equatable {
        let identity: FileLocation.Identity
        let byteCount: Int
        let seconds: Int
        let nanoseconds: Int

        init(_ found: stat) {
            identity = FileLocation.Identity(
                device: UInt64(found.st_dev), inode: UInt64(found.st_ino))
            byteCount = Int(found.st_size)
            #if canImport(Darwin)
            let time = found.st_mtimespec
            #else
            let time = found.st_mtim
            #endif
            seconds = Int(time.tv_sec)
            nanoseconds = Int(time.tv_nsec)
        }

        /// Whether the next change will have another time: some file systems count in two seconds.
        var isOld: Bool {
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            return abs(Int(now.tv_sec) - seconds) > 2
        }
    }

    /// Waits until the file has lain still for more than two seconds.
    ///
    /// - Parameter file: Beside it there is neither a log with content nor a journal.
    /// - Throws: `.busy` if it is changed all the time, `.notFound`, `.io`.
    init(
        _ file: FileLocation, journalMode: Configuration.JournalMode, patience: Duration
    ) throws(StoreError) {
        self.file = file
        self.journalMode = journalMode
        stamp = try Self.settled(file, patience)
    }

    private static func settled(
        _ file: FileLocation, _ patience: Duration
    ) throws(StoreError) -> Stamp {
        let deadline = ContinuousClock.now + max(patience, .seconds(4))
        while true {
            guard let found = try FileLocation.information(file.path) else {
                throw StoreError(.notFound, "there is no file at \(file.path)")
            }
            let stamp = Stamp(found)
            if stamp.isOld { return stamp }
            guard ContinuousClock.now < deadline else { throw changed(file) }
            sleepBriefly()
        }
    }

    /// Why nothing may be handed out that was read from the file; `nil` while it lies still.
    func failure() -> StoreError? {
        guard file.companionByteCount("-wal") == 0,
            let found = try? FileLocation.information(file.path), Stamp(found) == stamp
        else { return Self.changed(file) }
        return nil
    }

    private static func changed(_ file: FileLocation) -> StoreError {
        StoreError(
            .busy, "\(file.path) was changed while it was read without locks",
            hint: "Open it again. Who may write to the file and its folder reads with locks.")
    }

    /// The URI that the engine opens.
    var uri: String {
        let digits = Array("0123456789abcdef")
        var uri = "file://"
        for byte in file.path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"):
                uri.unicodeScalars.append(UnicodeScalar(byte))
            default: uri += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return uri + "?immutable=1"
    }
}
