import CSQLCipher
import Testing

@testable import Coffer

/// SQLCipher's C API without any layer around it, as other wrappers use it.
final class RawConnection {
    let db: OpaquePointer

    init(_ path: String, key: UInt8? = nil, pragmas: [String] = []) throws {
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil)
        try #require(code == SQLITE_OK)
        db = try #require(opened)
        if let key {
            try #require(setKey(Self.keyText(key)) == SQLITE_OK)
        }
        for pragma in pragmas { run(pragma) }
    }

    deinit {
        sqlite3_close_v2(db)
    }

    /// Makes a file as an older SQLCipher does, and leaves it open.
    static func older(_ path: String, _ version: OlderVersion, key: UInt8) throws -> RawConnection {
        try RawConnection(path, key: key, pragmas: version.pragmas)
    }

    @discardableResult
    func run(_ sql: String) -> Int32 {
        sqlite3_exec(db, sql, nil, nil, nil)
    }

    func rekey(_ key: UInt8) -> Int32 {
        let text = Self.keyText(key)
        return sqlite3_rekey_v2(db, "main", text, Int32(text.utf8.count))
    }

    /// First column of the first row; `nil` on failure or without a row.
    func first(_ sql: String) -> String? {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(db, sql, -1, &statement, nil) == SQLITE_OK,
            sqlite3_step(statement) == SQLITE_ROW
        else { return nil }
        return sqlite3_column_text(statement, 0).map { String(cString: $0) }
    }

    /// Gives the main file its key, a passphrase or the text of a raw key. The process-wide
    /// defaults apply to it, so another test must not change them meanwhile.
    func setKey(_ text: String) -> Int32 {
        Coffer.Attachment.defaults.withLock { _ in
            sqlite3_key_v2(db, "main", text, Int32(text.utf8.count))
        }
    }

    /// Attaches a file by SQLCipher itself, with the process-wide defaults too.
    func attach(_ path: String, as name: String, key: UInt8) -> Int32 {
        Coffer.Attachment.defaults.withLock { _ in
            run("ATTACH '\(path)' AS \(name) KEY \"\(Self.keyText(key))\"")
        }
    }

    static func keyText(_ key: UInt8) -> String {
        let digits = String(repeating: "0", count: key < 16 ? 1 : 0) + String(key, radix: 16)
        return "x'" + String(repeating: digits, count: 32) + "'"
    }
}

/// The formats that Coffer reads only to upgrade them.
enum OlderVersion: CaseIterable {
    case one
    case two
    case twoBigEndian

    var pragmas: [String] {
        // SQLCipher 3 ignores settings that it does not know.
        let common = [
            "PRAGMA cipher_page_size = 1024", "PRAGMA kdf_iter = 4000",
            "PRAGMA cipher_hmac_algorithm = HMAC_SHA1",
            "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1",
        ]
        return switch self {
        case .one: common + ["PRAGMA cipher_use_hmac = OFF"]
        case .two: common
        case .twoBigEndian: common + ["PRAGMA cipher_hmac_pgno = be"]
        }
    }
}
