import Coffer
import Foundation

/// The `sqlcipher` program, to show that the store is an ordinary SQLCipher file.
enum Shell {
    /// Counts the airports. The passphrase goes through standard input: other users of the
    /// machine can see the arguments of a process.
    static func airportCount(_ path: String, passphrase: String) throws -> String {
        let shell = Process()
        shell.executableURL = URL(filePath: "/usr/bin/env")
        shell.arguments = ["sqlcipher", path]
        let input = Pipe()
        let output = Pipe()
        shell.standardInput = input
        shell.standardOutput = output
        try shell.run()
        let isOld = try Engine.capabilities.cipherMajorVersion < 4
        // SQLCipher 3 has other defaults than the profile that Coffer uses there.
        let settings = isOld ? "PRAGMA cipher_page_size = 4096; PRAGMA kdf_iter = 256000;" : ""
        let quoted = passphrase.replacing("'", with: "''")
        let script = "PRAGMA key = '\(quoted)'; \(settings) SELECT count(*) FROM airport;\n"
        try input.fileHandleForWriting.write(contentsOf: Data(script.utf8))
        try input.fileHandleForWriting.close()
        let answer = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        shell.waitUntilExit()
        // SQLCipher 4 answers `ok` to the key.
        return answer.split(separator: "\n").last.map(String.init) ?? ""
    }
}
