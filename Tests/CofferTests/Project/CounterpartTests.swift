import Foundation
import Testing

/// A program that comes from a queue of databases finds each verb of `Connection` in a transaction
/// or at a store, or a reason here.
@Suite struct CounterpartTests {
    private static let reasons = [
        "write, read and savepoint are closures": [
            "begin", "beginSavepoint", "commit", "isInTransaction", "releaseSavepoint",
            "transaction",
        ],
        "a store is one file: nest the write of another store": [
            "attach", "attachedNames", "detach",
        ],
        "Store.prepareConnections runs on every connection, also on those that open later": [
            "limit", "register", "registerRegexp", "removeCollation", "removeFunction", "setLimit",
            "trace",
        ],
        "a Configuration says it for all connections": ["busyPolicy", "clearStatementCache"],
        "cursors and statements end with their body": ["closeCursors", "hasOpenCursors"],
        "tx.table(_:) has it under a shorter name": ["createTable", "dropTable"],
        "Store.backup, Store.upgrade and Store.encrypt copy whole stores": ["save"],
        "a store opens with its key, and is open until it is closed": ["isOpen", "setKey"],
        "Store.path and Store.profile say it": ["cipherInformation", "url"],
        "lastChangeCount counts the last change": ["totalChangeCount"],
        "the connection is the store's, and may close": ["withUnsafeHandle"],
    ]

    private static let places = [
        "Reading", "WriteTransaction", "Store", "ReadTable", "WriteTable",
    ]

    /// The names of public functions and properties, by the type that they extend.
    private static func verbs() throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        let root = Repository.root.appending(path: "Sources/Coffer").path
        let files = FileManager.default.enumerator(atPath: root)
        while let file = files?.nextObject() as? String {
            guard file.hasSuffix(".swift") else { continue }
            let text = try Repository.text("Sources/Coffer/\(file)")
            var type: String?
            for line in text.split(separator: "\n") {
                if let match = line.firstMatch(
                    of: /^(?:public |final )*(?:extension|class|struct|protocol) (\w+)/)
                {
                    type = String(match.1)
                } else if line.hasPrefix("}") {
                    type = nil
                } else if let type,
                    let match = line.firstMatch(
                        of: /^ {4}public (?:mutating |static )*(?:func|var) `?(\w+)/)
                {
                    found[type, default: []].insert(String(match.1))
                }
            }
        }
        return found
    }

    @Test func `each verb of a connection has a counterpart at a store, or a reason`() throws {
        let verbs = try Self.verbs()
        let own = try #require(verbs["Connection"])
        #expect(own.count > 60)
        let counterparts = Self.places.reduce(into: Set<String>()) {
            $0.formUnion(verbs[$1] ?? [])
        }
        let excused = Set(Self.reasons.values.flatMap(\.self))
        for name in own.subtracting(counterparts).sorted() where !excused.contains(name) {
            Issue.record("Connection.\(name) has no counterpart and no reason")
        }
        for name in excused.sorted() where !own.contains(name) || counterparts.contains(name) {
            Issue.record("\(name) needs no reason")
        }
    }
}
