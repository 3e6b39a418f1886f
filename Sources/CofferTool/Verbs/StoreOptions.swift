import ArgumentParser
import Coffer

/// The file, and the options for opening it.
struct StoreOptions: ParsableArguments {
    @Argument(help: "The store's file.", completion: .file())
    var path: String

    @OptionGroup var busy: BusyTimeoutOption

    func validate() throws {
        guard !path.isEmpty else { throw ValidationError("The path is empty.") }
    }

    /// The tool does not change the journal mode, because the file's own program chose it. It opens
    /// a file with several names only for reading, unless a verb says otherwise.
    var configuration: Configuration {
        var configuration = Configuration()
        configuration.journalMode = .existing
        configuration.hardLinks = .refused
        configuration.busyTimeout = busy.duration
        configuration.maximumReaderCount = 1
        configuration.maximumCacheByteCount = 64 << 20
        return configuration
    }

    /// Reads the secret, opens the store, and closes it whatever `body` does.
    ///
    /// - Parameter readerCount: The most connections that read at once.
    func withStore<T: Sendable>(
        _ secret: SecretOptions, mode: OpenMode = .mustExist,
        hardLinks: Configuration.HardLinks = .refused, readerCount: Int = 1,
        _ body: (Store) async throws -> T
    ) async throws -> T {
        let opened = try await open(
            with: try key(secret), mode: mode, hardLinks: hardLinks, readerCount: readerCount)
        return try await closing(opened, body)
    }

    func open(
        with key: consuming sending StoreKey, mode: OpenMode = .mustExist,
        hardLinks: Configuration.HardLinks = .refused, readerCount: Int = 1
    ) async throws -> Store {
        var configuration = configuration
        configuration.hardLinks = hardLinks
        // The share of each connection is that of one reader and the writer.
        configuration.maximumCacheByteCount =
            configuration.maximumCacheByteCount / 2
            * (readerCount + 1)
        configuration.maximumReaderCount = readerCount
        return try await Store(path: path, key: key, mode: mode, configuration: configuration)
    }

    /// Closes the store whatever `body` does.
    func closing<T: Sendable>(
        _ opened: Store, _ body: (Store) async throws -> T
    ) async throws -> T {
        let result: T
        do {
            result = try await body(opened)
        } catch {
            try? await opened.close()
            throw error
        }
        try await opened.close()
        return result
    }

    /// Does the same with a connection, whose statements return row after row.
    func connect(_ secret: SecretOptions, mode: OpenMode = .mustExist) throws -> Connection {
        try Connection(
            path: path, key: try key(secret), mode: mode, configuration: configuration)
    }

    /// Reads the key of the file, after checking that the file exists: nobody should type a
    /// passphrase in vain.
    func key(_ secret: SecretOptions) throws -> StoreKey {
        let source = try secret.source()
        _ = try StoreFileStatus(path: path)
        return try SecretReader.current(source, for: path)
    }
}

/// The page layout of a new file.
struct ProfileOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Layout of the new file: sqlcipher4, portable (both engines read it) or sqlcipher3; "
                + "the default is the engine's own.",
            valueName: "name"),
        completion: .list(ProfileName.allCases.map(\.rawValue)))
    var profile: ProfileName?

    /// Refuses a layout that this engine cannot make, before anybody types a passphrase.
    ///
    /// - Throws: `ToolError` `.unsupportedFormat`.
    func requireUsable() throws {
        guard profile == .sqlcipher4, try Engine.capabilities.cipherMajorVersion < 4 else { return }
        throw ToolError(
            .unsupportedFormat, "this engine does not make files of the profile sqlcipher4",
            hint: "It is SQLCipher \(try Engine.capabilities.cipherVersion). Use --profile "
                + "portable, which both engines read, or a build with SQLCipher 4.")
    }
}

/// The profiles, with the names from the documentation.
enum ProfileName: String, ExpressibleByArgument, CaseIterable {
    case sqlcipher4
    case portable
    case sqlcipher3

    var profile: CipherProfile {
        switch self {
        case .sqlcipher4: .sqlcipher4
        case .portable: .portable
        case .sqlcipher3: .sqlcipher3
        }
    }
}
