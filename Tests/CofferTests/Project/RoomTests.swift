import Foundation
import Testing

/// The order of the rooms: which types of other folders each folder of the library may use.
@Suite struct RoomTests {
    /// A room, and the rooms whose types it may use.
    private static let order: [String: Set<String>] = [
        "Keys": [],
        "Keyring": ["Keys"],
        "Pages": ["Keys"],
        "Engine": ["Keys", "Keyring", "Pages"],
        "SQL": ["Keys", "Engine"],
        "Rekey": ["Keys", "Pages", "Engine"],
        "Store": ["Keys", "Keyring", "Pages", "Engine", "SQL", "Rekey"],
        "Records": ["Engine", "SQL", "Store"],
        // It asks a record type for the key that its attachments have.
        "Buckets": ["Engine", "SQL", "Store", "Records"],
        // It asks a record type and a bucket for the name of the table.
        "Observation": ["Engine", "SQL", "Store", "Records", "Buckets"],
        "Verification": ["Keys", "Pages", "Engine", "Store"],
        "Rotation": ["Keys", "Keyring", "Engine", "Rekey", "Store", "Verification"],
        "Copies": ["Keys", "Keyring", "Pages", "Engine", "SQL", "Store"],
        "Replication": ["Keys", "Keyring", "Pages", "Engine", "SQL", "Store", "Copies"],
        "Recovery": [
            "Keys", "Keyring", "Pages", "Engine", "SQL", "Store", "Verification", "Copies",
        ],
    ]

    /// Arrows that point back, each with its reason.
    private static let exceptions: Set<Arrow> = [
        // A sweep of pages takes helpers from there, and a test gives a store its own threads.
        Arrow(from: "Engine", to: "Store", by: "WorkThreads"),
        // A blob that is written in place fires no trigger, so the store notes it in the change
        // log.
        Arrow(from: "Store", to: "Observation", by: "ChangeHistory"),
    ]

    /// Files outside Engine and SQL that call C, each with its reason.
    private static let callers: [String: String] = [
        "Copies/CopyStatement.swift": "binds and steps, row by row",
        "Copies/PageCopy.swift": "sqlite3_backup",
        "Copies/PlaintextFile.swift": "opens the plaintext side",
        "Copies/RowTransfer.swift": "reports and cancels within a statement",
        "Recovery/SalvagedTable.swift": "binds and compares values as the file stores them",
        "Rekey/Rekey.swift": "sqlite3_rekey",
        "Rekey/RekeyedWAL.swift": "syncs the main file between two checkpoints",
        "Replication/Store+Pages.swift": "syncs the WAL",
        "Store/Transactions/SpoolFile.swift": "opens a file without a name",
    ]

    /// Records binds and steps its prepared statements itself, for speed, so the room may call C.
    private static let callingRooms: Set<String> = ["Engine", "SQL", "Records"]

    private struct Arrow: Hashable, CustomStringConvertible {
        let from: String
        let to: String
        let by: String

        var description: String { "\(from) uses \(by) of \(to)" }
    }

    private struct Source {
        /// The path below `Sources/Coffer`.
        let path: String
        let code: String
        let types: [String]
        let mentioned: Set<String>

        /// - Parameter text: The text of the file; comments and texts are left out.
        init(_ path: String, _ text: String) {
            self.path = path
            let words = text.replacing(#/(?m)//.*$/#, with: "")
                .replacing(#/"""(?s:.*?)"""|"(?:[^"\\\n]|\\.)*"/#) { match in
                    // An interpolation in a string is code.
                    match.output.matches(of: #/\\\((.*?)\)/#).map { $0.1 }.joined(separator: " ")
                }
            code = words
            types = Self.types(of: words)
            mentioned = Self.mentioned(by: words)
        }

        /// Files outside any room are below all rooms.
        var room: String? {
            path.contains("/") ? path.split(separator: "/").first.map(String.init) : nil
        }

        /// Types that other files can use.
        private static func types(of code: String) -> [String] {
            code.matches(
                of:
                    #/
                (?m) ^ (?!private|fileprivate) (?:[@a-z()]+\s)*
                (?:struct|class|enum|protocol|actor|typealias) \s (?<name>\w+)
                /#
            ).map { String($0.name) }
        }

        /// Types that the file mentions by their bare name, and does not declare itself.
        private static func mentioned(by code: String) -> Set<String> {
            let own = code.matches(
                of:
                    #/
                (?:struct|class|enum|protocol|actor|typealias|associatedtype) \s (?<name>\w+)
                /#
            ).map { String($0.name) }
            let all = code.matches(of: #/(?:^|[^.\w])(?<name>[A-Z]\w*)/#).map { String($0.name) }
            return Set(all).subtracting(own)
        }
    }

    private static func library() throws -> [Source] { try read.get() }

    /// Read once for all tests: to look for the types takes seconds.
    private static let read = Result {
        let base = Repository.root.appending(path: "Sources/Coffer")
        let files = try #require(FileManager.default.enumerator(atPath: base.path))
        return try files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted()
            .map { Source($0, try String(contentsOf: base.appending(path: $0), encoding: .utf8)) }
    }

    /// Uses of types against the order.
    private static func backArrows(_ sources: [Source]) -> Set<Arrow> {
        var rooms: [String: Set<String>] = [:]
        for source in sources {
            for type in source.types { rooms[type, default: []].insert(source.room ?? "") }
        }
        var arrows: Set<Arrow> = []
        for source in sources {
            guard let room = source.room else { continue }
            for name in source.mentioned {
                guard let owners = rooms[name], owners.count == 1, let owner = owners.first,
                    !owner.isEmpty, owner != room, !(order[room]?.contains(owner) ?? false)
                else { continue }
                arrows.insert(Arrow(from: room, to: owner, by: name))
            }
        }
        return arrows
    }

    @Test func `every folder of the library is a room with a place in the order`() throws {
        let rooms = Set(try Self.library().compactMap(\.room))
        #expect(rooms == Set(Self.order.keys))
        for (room, below) in Self.order {
            for other in below { #expect(Self.order[other]?.contains(room) == false) }
        }
    }

    @Test func `no room uses a type of a room above it`() throws {
        #expect(try Self.backArrows(Self.library()) == Self.exceptions)
    }

    @Test(arguments: [
        ("Keys", "SQL", "Tokenizer"), ("Pages", "Engine", "Handle"),
        ("Engine", "Store", "WriteQueue"), ("Store", "Records", "Record"),
        ("Store", "Observation", "StoreObservation"), ("Records", "Buckets", "Bucket"),
        ("Rekey", "Verification", "WALCheck"), ("Store", "Rotation", "KeyRotation"),
    ])
    func `a new arrow back is found`(from: String, to: String, name: String) throws {
        let arrow = Source("\(from)/New.swift", "func use(_ it: \(name)) { print(\"\\(it)\") }")
        let found = try Self.backArrows(Self.library() + [arrow]).subtracting(Self.exceptions)
        #expect(found == [Arrow(from: from, to: to, by: name)])
    }

    @Test func `a type in a comment, in a text or of the file's own is not an arrow`() throws {
        let source = Source(
            "Keys/New.swift",
            "// Record\nlet text = \"Record\"\nstruct Fine { enum Query {}; let it: Query }")
        #expect(try Self.backArrows(Self.library() + [source]) == Self.exceptions)
    }

    @Test func `the page of public types names each of them once`() throws {
        let library = try Self.library()
        let page = Repository.root.appending(path: "Sources/Coffer/Coffer.swift")
        let named = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").dropFirst(
            2
        )
        .filter { $0.hasPrefix("// ") && !$0.hasPrefix("// ──") }
        .flatMap { $0.dropFirst("// Verification   ".count).split(separator: " ") }
        let declared = library.flatMap { source in
            source.code.matches(
                of: #/(?m)^public (?:final )?(?:struct|class|enum|protocol|typealias) (?<name>\w+)/#
            ).map { $0.name }
        }
        #expect(named.sorted() == declared.sorted())
    }

    @Test func `C is called only in the rooms and files that are named`() throws {
        var calling: Set<String> = []
        for source in try Self.library()
        where source.code.contains(#/\b(?:sqlite3_|coffer_)[a-z]/#) {
            if let room = source.room, Self.callingRooms.contains(room) { continue }
            calling.insert(source.path)
        }
        #expect(calling == Set(Self.callers.keys))
    }
}
