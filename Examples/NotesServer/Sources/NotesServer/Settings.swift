import Coffer
import Foundation
import Logging

/// The settings of the server, from its environment.
struct Settings {
    var folder = URL(filePath: "notes-data")
    var host = "127.0.0.1"
    var port = 8080
    var logLevel = Logger.Level.info
    private var keyFile: URL

    init(_ environment: [String: String]) throws {
        if let path = environment["NOTES_FOLDER"] { folder = URL(filePath: path) }
        if let name = environment["NOTES_HOST"] { host = name }
        if let text = environment["NOTES_PORT"] {
            guard let number = UInt16(text) else {
                throw SettingsError("NOTES_PORT is a number from 0 to 65535")
            }
            port = Int(number)
        }
        if let text = environment["NOTES_LOG_LEVEL"] {
            guard let level = Logger.Level(rawValue: text) else {
                throw SettingsError("NOTES_LOG_LEVEL is trace, debug, info, notice or warning")
            }
            logLevel = level
        }
        keyFile = folder.appending(path: "key")
        if let path = environment["NOTES_KEY_FILE"] { keyFile = URL(filePath: path) }
    }

    /// The key in the key file. Makes folder, file and key if there is no store yet.
    func key() throws -> StoreKey {
        let files = FileManager.default
        if files.fileExists(atPath: keyFile.path) {
            return .raw(try Data(contentsOf: keyFile))
        }
        guard !files.fileExists(atPath: folder.appending(path: "notes.db").path) else {
            throw SettingsError("\(keyFile.path) is missing: put the key of the notes back")
        }
        for folder in [folder, keyFile.deletingLastPathComponent()] {
            try files.createDirectory(
                at: folder, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        let key = StoreKey.random()
        try key.withBytes { bytes in
            // Other users never see the file: it has its permissions before it has its name.
            let created = files.createFile(
                atPath: keyFile.path, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
            guard created else { throw SettingsError("\(keyFile.path) cannot be written") }
            // The key must outlive a power cut as the notes do.
            try FileHandle(forWritingTo: keyFile).synchronize()
        }
        return key
    }
}

/// A setting that the server cannot use.
struct SettingsError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
