import Foundation
import Workload

@testable import Coffer

/// Fills the disk next to a store with a keyring, and says what each verb does then.
///
/// - Returns: The files that are left, and the credentials that open the store.
func useKeyringOnFullDisk() throws -> String {
    let path = next()
    let folder = URL(filePath: path).deletingLastPathComponent()
    func other(_ name: String) -> String { folder.appending(path: name).path }
    func attempt(_ name: String, _ body: () throws -> Void) {
        do {
            try body()
            say("\(name) done")
        } catch {
            say("\(name) \((error as? StoreError).map { "\($0.code)" } ?? "\(error)")")
        }
    }

    let configuration = configuration("delete")
    let store = try Store(path: path, key: KeyringVerb.key(1), configuration: configuration)
    try store.keys.add(KeyringVerb.slot(2), label: "2")
    try store.keys.backUp(to: other("before"))
    try fill(other("ballast"))
    attempt("add") { try store.keys.add(KeyringVerb.slot(3), label: "3") }
    attempt("change") { try store.keys.change(2, to: KeyringVerb.slot(4)) }
    attempt("back up") { try store.keys.backUp(to: other("during")) }
    attempt("copy") { try store.backup(to: other("copy.db")) }
    try store.close()
    attempt("restore") {
        try Keyring.restore(
            from: other("before"), for: path, by: KeyringVerb.credential(1),
            configuration: configuration)
    }
    attempt("make") {
        try Store(
            path: other("new.db"), key: KeyringVerb.key(1), configuration: configuration
        ).close()
    }
    try FileManager.default.removeItem(atPath: other("ballast"))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    say("files \(names.joined(separator: " "))")
    let opening = (1...4 as ClosedRange<UInt8>).filter { number in
        (try? Store(path: path, key: KeyringVerb.key(number), configuration: configuration)) != nil
    }
    return "opens \(opening.map(String.init).joined(separator: " "))"
}

/// Writes zeros until the disk has no room.
private func fill(_ path: String) throws {
    let descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
    defer { close(descriptor) }
    let zeros = [UInt8](repeating: 0, count: 4096)
    while write(descriptor, zeros, zeros.count) > 0 {}
    guard errno == ENOSPC else { throw CocoaError(.fileWriteUnknown) }
}
