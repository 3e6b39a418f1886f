import ArgumentParser
import SystemPackage

/// A new file with a secret, which only its owner may read.
enum SecretFile {
    /// - Throws: `ValidationError` for a path that cannot be one.
    static func requirePath(_ path: String) throws {
        guard !path.isEmpty else { throw ValidationError("The path is empty.") }
        guard path != "-" else {
            throw ValidationError("A key is written to a file, never to standard output.")
        }
    }

    /// Writes the bytes, syncs them, and gives the file its name.
    static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws {
        let file = try OutputFile(path)
        do {
            try file.descriptor.writeAll(bytes)
        } catch {
            throw ToolError(.io, "\(path) cannot be written: \(error)")
        }
        try file.finish()
    }
}
