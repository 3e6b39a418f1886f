#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that is read without locks, which is correct as long as nobody changes it.
///
/// The engine opens it as `immutable`, and then neither looks for nor creates a file next to it.
/// "Setting the immutable property on a database file that does in fact change can result in
/// incorrect query results": <https://www.sqlite.org/c3ref/open.html>. So every probe checks for a
/// change before the content that was read is handed out. A checkpoint or a rollback writes to the
/// main file; a commit in WAL mode makes the WAL non-empty.
struct FileAtRest {
    let file: FileLocation
    /// The mode that the header names; the engine itself reports `delete` for such a file.
    let journalMode: Configuration.JournalMode
    private let stamp: FileStamp

    /// Waits until the file has been unchanged for more than two seconds, and remembers its size
    /// and time, with which `failure()` compares.
    ///
    /// - Parameters:
    ///   - file: A file with neither a non-empty WAL nor a journal next to it.
    ///   - journalMode: The mode that the file's header names.
    ///   - patience: How long to wait at most; at least 4 seconds.
    /// - Throws: `.busy` if changes to the file do not pause in that time; `.notFound` if there is
    ///   no file; `.io` if the system does not answer.
    init(
        _ file: FileLocation, journalMode: Configuration.JournalMode, patience: Duration
    ) throws(StoreError) {
        self.file = file
        self.journalMode = journalMode
        stamp = try Self.settled(file, patience)
    }

    private static func settled(
        _ file: FileLocation, _ patience: Duration
    ) throws(StoreError) -> FileStamp {
        let deadline = ContinuousClock.now + max(patience, .seconds(4))
        while true {
            guard let found = try FileLocation.information(file.path) else {
                throw StoreError(.notFound, "there is no file at \(file.path)")
            }
            let stamp = FileStamp(found)
            if stamp.isOld { return stamp }
            guard ContinuousClock.now < deadline else { throw changed(file) }
            sleepBriefly()
        }
    }

    /// `.busy` if the file has changed or is gone since it was opened, or a non-empty WAL is next
    /// to it: nothing that was read may then be returned. `nil` while the file is unchanged.
    func failure() -> StoreError? {
        guard file.companionByteCount("-wal") == 0,
            let found = try? FileLocation.information(file.path), FileStamp(found) == stamp
        else { return Self.changed(file) }
        return nil
    }

    private static func changed(_ file: FileLocation) -> StoreError {
        StoreError(
            .busy, "\(file.path) was changed while it was read without locks",
            hint: "Read it again; a connection must be opened again. Reading with locks needs room "
                + "on the disk, and permission to write to the file and its folder.")
    }

    /// The URI under which the engine opens the file.
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

extension Connection {
    /// Whether it reads a file at rest that has changed, so that every read would fail.
    var isOutdated: Bool { handle?.rest?.failure() != nil }
}
