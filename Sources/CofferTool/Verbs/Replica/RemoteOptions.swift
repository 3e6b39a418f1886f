import ArgumentParser
import Coffer
import CofferReplica

/// Where the access key of a storage service is, for a remote that is one.
struct RemoteOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read the access key of a storage service from a file, in the format of Amazon's "
                + "shared credentials file. Only its owner may be allowed to read it.",
            valueName: "path"),
        completion: .file())
    var credentialsFile: String?

    @Option(
        help: ArgumentHelp("Take this profile of that file.", valueName: "name"))
    var credentialsProfile = "default"

    @Option(
        help: ArgumentHelp(
            "Read it from a shell command's output, which has the format of Amazon's setting "
                + "credential_process.", valueName: "command"),
        completion: .list([]))
    var credentialsCommand: String?

    @Flag(help: "Get it from the machine or the container, whose role it is.")
    var credentialsInstance = false

    @Option(help: ArgumentHelp("The region of the bucket.", valueName: "name"))
    var region = "us-east-1"

    @Flag(help: "The service is Google's: the access key is one of its HMAC keys.")
    var google = false

    func validate() throws {
        guard sources.count <= 1 else {
            throw ValidationError("Name one source of the access key, not \(sources.count).")
        }
    }

    private var sources: [S3Credentials] {
        [
            credentialsFile.map { .file($0, profile: credentialsProfile) },
            credentialsCommand.map { .command(["/bin/sh", "-c", $0]) },
            credentialsInstance ? .instance : nil,
        ].compactMap(\.self)
    }

    /// Whether a place is a service, and not a folder.
    static func isService(_ place: String) -> Bool { place.contains("://") }

    /// Whether a place may be a remote: a service, or a folder.
    static func isRemote(_ place: String) -> Bool { isService(place) || NewFile.isFolder(place) }

    /// The remote at a place: a URL, or the path of a folder.
    ///
    /// - Throws: `ToolError` `.usage`; errors of the remote.
    func remote(_ place: String) throws -> any Remote {
        guard Self.isService(place) else {
            guard sources.isEmpty else {
                throw ToolError(
                    .usage, "a folder needs no access key",
                    hint: "Name a service by its URL: https://HOST/BUCKET/PREFIX.")
            }
            return try FolderRemote(place)
        }
        guard let credentials = sources.first else {
            throw ToolError(
                .usage, "a storage service needs an access key",
                hint: "Name its source: --credentials-file, --credentials-command or "
                    + "--credentials-instance.")
        }
        return try S3Remote(
            place, credentials: credentials, region: google ? "auto" : region,
            condition: google ? .googleGeneration : .ifNoneMatch)
    }

    /// The remote at a place, and a key of the store that it has. A passphrase is a credential if
    /// that store has a keyring.
    ///
    /// - Throws: `ToolError` `.unsupportedFormat` for a credential, and a store without a keyring;
    ///   as `remote(_:)`; errors of the remote, and of reading the secret.
    func replica(
        at place: String, _ secret: SecretOptions
    ) async throws -> (any Remote, KeyHolder) {
        let source = try secret.source()
        let remote = try remote(place)
        let keyring = source.form == .rawKey ? nil : try await Keyring.replicated(to: remote)
        if let keyring {
            let credential = try SecretReader.credential(source, of: keyring, at: remote.place)
            return (remote, KeyHolder(.keyring(credential)))
        }
        guard [.passphrase, .rawKey].contains(source.form) else {
            throw ToolError(
                .unsupportedFormat, "the replica is of a store without a keyring",
                hint: "Name the passphrase or the raw key of the store.")
        }
        return (remote, KeyHolder(try SecretReader.own(source, for: remote.place)))
    }
}

/// A place that has a replica, or will have one.
struct RemoteArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The remote: a folder, or a bucket of a storage service and a prefix in it, as "
                + "https://HOST/BUCKET/PREFIX.", valueName: "remote"),
        completion: .directory)
    var place: String

    func validate() throws {
        guard !place.isEmpty else { throw ValidationError("The remote is empty.") }
    }
}
