import Foundation

@testable import Coffer

/// A verb that writes a keyring. Its secrets are numbered: credential 3 is a key file whose 32
/// bytes are all 3.
public enum KeyringVerb: String, CaseIterable, Sendable {
    case initialize = "init"
    case add, change, remove, restore, rebuild
    case backUp = "backup"
    case exportRoot = "export-root"
    case restoreStore = "restore-store"
    case enable, rotate
    case replaceRoot = "replace-root"

    public static func credential(_ number: UInt8) -> KeyCredential { .keyFile(bytes(number)) }

    public static func slot(_ number: UInt8) -> NewSlot { .keyFile(bytes(number)) }

    private static func bytes(_ number: UInt8) -> [UInt8] {
        [UInt8](repeating: number, count: 32)
    }

    /// Whether it changes the key of every page.
    public var changesPages: Bool { [.enable, .rotate, .replaceRoot].contains(self) }

    /// - Parameter number: 0 for a key that no keyring has.
    public static func key(_ number: UInt8) -> StoreKey {
        number == 0 ? .raw(bytes(9)) : .keyring(credential(number))
    }

    /// The letters of a root backup, in the folder of the store.
    public static let lettersName = "letters"
    /// A copy of the keyring.
    public static let copyName = "copy.keyring"
    /// A backup of another store.
    public static let backupName = "backup.db"

    /// - Parameter didShow: Called when a root backup is shown.
    public func run(
        _ path: String, _ configuration: Configuration, didShow: () -> Void = {}
    ) throws {
        let folder = URL(filePath: path).deletingLastPathComponent()
        func other(_ name: String) -> String { folder.appending(path: name).path }
        func withStore(_ body: (Store) throws -> Void) throws {
            let store = try Store(
                path: path, key: Self.key(1), mode: .mustExist, configuration: configuration)
            defer { try? store.close() }
            try body(store)
        }
        func withKeys(_ body: (StoreKeys) throws -> Void) throws {
            try withStore { try body($0.keys) }
        }
        switch self {
        case .initialize:
            try Store(path: path, key: Self.key(1), configuration: configuration).close()
        case .add:
            try withKeys { try $0.add(Self.slot(3), label: "3") }
        case .change:
            try withKeys { try $0.change(2, to: Self.slot(3)) }
        case .remove:
            try withKeys { try $0.remove(2) }
        case .backUp:
            try withKeys { try $0.backUp(to: other(Self.copyName)) }
        case .exportRoot:
            try withKeys { keys in try keys.withRootBackup { _ in didShow() } }
        case .restore:
            try Keyring.restore(
                from: other(Self.copyName), for: path, by: Self.credential(1),
                configuration: configuration)
        case .rebuild:
            let letters = try Data(contentsOf: URL(filePath: other(Self.lettersName)))
            try Keyring.rebuild(
                for: path, rootBackup: letters, as: Self.slot(3), label: "3",
                configuration: configuration)
        case .restoreStore:
            _ = try Store.restore(
                from: other(Self.backupName), key: Self.key(1), to: path,
                configuration: configuration)
        case .enable:
            try Store.enableKeyring(
                path, key: Self.key(0), as: Self.credential(1), label: "1",
                endsOtherPrograms: true, configuration: configuration, recovery: nil)
        case .rotate:
            try withStore { _ = try $0.rotate() }
        case .replaceRoot:
            try withStore { _ = try $0.replaceRootKey(dropping: [2]) }
        }
    }
}
