import Coffer

/// The names that objects of a replica have.
enum RemoteName {
    private static let characters = Set("abcdefghijklmnopqrstuvwxyz0123456789.-/".utf8)

    /// Refuses a name that a folder or a service may take for another one.
    ///
    /// - Throws: `.misuse`.
    static func require(_ name: String) throws(StoreError) {
        let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard name.utf8.count <= 200, name.utf8.allSatisfy(characters.contains),
            parts.allSatisfy({ !$0.isEmpty && $0.first != UInt8(ascii: ".") })
        else { throw StoreError(.misuse, "no object of a remote can have the name \(name)") }
    }
}
