import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where the database of a connection or a store is.
public struct Location: Sendable, Hashable {
    enum Kind: Hashable {
        case file(String)
        case memory
        case temporary
    }

    let kind: Kind
    /// The open mode and the VFS that a URI names.
    var mode: OpenMode?
    var vfs: String?

    /// A file at a path, which is checked only when it is opened.
    public static func file(_ path: String) -> Location { Location(kind: .file(path)) }

    /// In memory, for as long as the connection or store is open.
    public static let memory = Location(kind: .memory)

    /// A temporary database, which is deleted with its connection or store. The engine keeps it in
    /// memory, like everything temporary, and would encrypt anything that it wrote to disk.
    public static let temporary = Location(kind: .temporary)

    /// A file named by a URL.
    ///
    /// - Throws: `StoreError` `.misuse` if it is not the URL of a file on this machine, or its path
    ///   is not UTF-8.
    public static func url(_ url: URL) throws -> Location {
        guard url.isFileURL, ["", "localhost"].contains(url.host(percentEncoded: false) ?? "")
        else {
            throw StoreError(
                .misuse, "the URL is not that of a file on this machine",
                hint: "Download what it names, and open the file.")
        }
        // Foundation's own decoding drops or repairs bytes that are not UTF-8.
        return .file(try FileURI.decoded(url.path(percentEncoded: true)[...]))
    }

    /// A database named by a URI in SQLite's form, such as `file:notes.db?mode=ro`.
    ///
    /// The parameters are `mode` (`ro`, `rw`, `rwc`, `memory`) and `vfs`. All others are refused:
    /// `cache`, `nolock`, `immutable` and `psow` switch off protections of the data, and a key does
    /// not belong in a text. See <https://www.sqlite.org/uri.html>.
    ///
    /// An empty path is a temporary database, and `:memory:` one in memory.
    ///
    /// - Throws: `StoreError` `.misuse` for a text of another form, one that names another machine,
    ///   another or a repeated parameter, an unknown mode, and bytes that are not UTF-8. The
    ///   message may name the parameter but never its value.
    public static func uri(_ text: String) throws -> Location {
        try FileURI(text).location()
    }

    /// The file's path; empty if there is no file.
    var path: String {
        if case .file(let path) = kind { path } else { "" }
    }

    /// The file's URL; `nil` if there is no file.
    public var url: URL? {
        if case .file(let path) = kind { URL(filePath: path) } else { nil }
    }
}

extension Location {
    /// The location of an open handle owned by someone else: its file, or `.memory` without one.
    static func of(_ handle: Handle) -> Location {
        let path = sqlite3_db_filename(handle.db, "main").map { String(cString: $0) } ?? ""
        return path.isEmpty ? .memory : .file(path)
    }

    /// Combines the mode and VFS of the URI with those of the caller. Without any mode it is
    /// `.createIfMissing`.
    ///
    /// - Throws: `.misuse` if both name different modes or VFSs, or for another mode than
    ///   `.createIfMissing` of a database without a file.
    func resolved(
        _ given: OpenMode?, _ configuration: Configuration
    ) throws(StoreError) -> (OpenMode, Configuration) {
        var configuration = configuration
        if let vfs {
            guard configuration.vfs == nil || configuration.vfs == vfs else {
                throw StoreError(.misuse, "the URI and the configuration name different VFSs")
            }
            configuration.vfs = vfs
        }
        guard given == nil || mode == nil || given == mode else {
            throw StoreError(.misuse, "the URI and the caller name different modes")
        }
        let mode = given ?? mode ?? .createIfMissing
        if case .file = kind { return (mode, configuration) }
        guard mode == .createIfMissing else {
            throw StoreError(.misuse, "a database without a file is always new")
        }
        return (mode, configuration)
    }
}

/// A `file:` URI, parsed here: the engine's own parser would accept unchecked parameters.
private struct FileURI {
    private let path: String
    private var parameters: [String: String] = [:]

    init(_ text: String) throws(StoreError) {
        let scheme = "file:"
        guard text.utf8.prefix(scheme.utf8.count).elementsEqual(scheme.utf8) else {
            throw StoreError(.misuse, "the URI of a database must begin with file:")
        }
        let withoutFragment = text.dropFirst(scheme.count).prefix { $0 != "#" }
        let parts = withoutFragment.split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = try Self.decoded(Self.withoutAuthority(parts[0]))
        guard parts.count == 2 else { return }
        for pair in parts[1].split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = try Self.decoded(sides[0])
            guard ["mode", "vfs"].contains(name), parameters[name] == nil else {
                throw Self.refused(name)
            }
            parameters[name] = try Self.decoded(sides.count == 2 ? sides[1] : "")
        }
    }

    func location() throws(StoreError) -> Location {
        var location =
            switch path {
            case ":memory:": Location.memory
            case "": Location.temporary
            default: Location.file(path)
            }
        switch parameters["mode"] {
        case nil: break
        case "ro": location.mode = .readOnly
        case "rw": location.mode = .mustExist
        case "rwc": location.mode = .createIfMissing
        case "memory": location = .memory
        default:
            throw StoreError(
                .misuse,
                "the mode in the URI of a database must be ro, rw, rwc or memory")
        }
        location.vfs = parameters["vfs"]
        return location
    }

    private static func refused(_ name: String) -> StoreError {
        let isKey = ["key", "hexkey", "textkey"].contains(name)
        // An unknown name may be part of a key.
        let isKnown = ["mode", "vfs", "cache", "nolock", "immutable", "psow"]
        return StoreError(
            .misuse,
            isKey || isKnown.contains(name)
                ? "the parameter \(name) cannot be in the URI of a database, or is in it twice"
                : "the URI has an unknown parameter",
            hint: isKey ? "Give the key to the connection: setKey(_:)." : "Leave it out.")
    }

    /// The path after `//` and an authority; the text itself without `//`. Throws `.misuse` for
    /// another machine: "the authority must be either an empty string or 'localhost'".
    private static func withoutAuthority(_ text: Substring) throws(StoreError) -> Substring {
        guard text.hasPrefix("//") else { return text }
        let rest = text.dropFirst(2)
        let end = rest.firstIndex(of: "/") ?? rest.endIndex
        guard ["", "localhost"].contains(rest[..<end]) else {
            throw StoreError(.misuse, "the URI of a database must not name another machine")
        }
        return rest[end...]
    }

    fileprivate static func decoded(_ text: Substring) throws(StoreError) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ $0 != UInt8(ascii: "+") }),
                let decoded = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else {
                throw StoreError(
                    .misuse, "a % in the URI is not followed by two hexadecimal digits")
            }
            bytes.append(decoded)
            rest = rest.dropFirst(2)
        }
        guard let decoded = bytes.withUnsafeBufferPointer({ String(exactly: $0) }) else {
            throw StoreError(.misuse, "the URI or URL is not UTF-8")
        }
        return decoded
    }
}
