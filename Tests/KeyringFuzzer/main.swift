import CLibFuzzer
import Crypto
import Foundation

@testable import Coffer

/// Reads bytes of libFuzzer's choice as a keyring, and renders what was read: see `Scripts/fuzz`.
///
/// A keyring may come from an attacker who knows no credential. Such a file must be refused, or
/// read as a keyring that is written back byte by byte.
enum KeyringFuzzer {
    private static let root = RootKey(bytes: SecretBytes([UInt8](repeating: 7, count: 32)))

    static func run(_ bytes: [UInt8]) {
        let mended = area(bytes)
        // The bytes as they are hardly ever have the digest of an area.
        _ = try? KeyringAreas(stored: bytes)
        guard let areas = try? KeyringAreas(stored: mended + mended) else { return }
        check(areas.current[0])
        check(Keyring(areas.current[0].content, isWhole: areas.areEqual))
    }

    /// An area that begins with the bytes, and has the digest of what it begins with.
    private static func area(_ bytes: [UInt8]) -> [UInt8] {
        let digested = KeyringArea.byteCount - SHA256.byteCount
        var area = Array(bytes.prefix(digested))
        area += [UInt8](repeating: 0, count: digested - area.count)
        return area + SHA256.hash(data: area)
    }

    private static func check(_ area: KeyringArea) {
        let content = area.content
        precondition(content.slots.count <= 15, "a keyring has at most 15 slots")
        precondition(content.derivationCount <= 2, "an opening derives at most twice")
        precondition(!area.isAuthentic(under: root), "nobody knows this root")
        guard content.minorVersion == 0 else { return }
        do {
            let written = try KeyringArea(content, under: root)
            let count = KeyringArea.byteCount - 2 * SHA256.byteCount
            precondition(written.bytes[..<count] == area.bytes[..<count], "a byte was not kept")
        } catch {
            preconditionFailure("what was read cannot be written: \(error)")
        }
    }

    /// Renders what a list of slots shows.
    private static func check(_ keyring: Keyring) {
        precondition(keyring.rootID.count == 32 && keyring.storeID.count == 32)
        _ = (keyring.rootMade.ISO8601Format(), keyring.keyMade.ISO8601Format())
        _ = keyring.rootBackups.last?.ISO8601Format()
        for slot in keyring.slots {
            _ = (slot.made.ISO8601Format(), slot.changed.ISO8601Format())
            precondition(slot.label.utf8.count <= 118, "a label is too long")
            precondition(slot.label.unicodeScalars.allSatisfy(isShown), "a label is not shown")
            precondition((slot.cost?.memoryByteCount ?? 0) <= 1 << 30, "a cost is not bounded")
            if slot.kind == .external { _ = try? keyring.blob(of: slot.id) }
        }
    }

    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
        default: true
        }
    }
}

var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
exit(
    LLVMFuzzerRunDriver(&count, &arguments) { start, count in
        KeyringFuzzer.run(Array(UnsafeBufferPointer(start: start, count: count)))
        return 0
    })
