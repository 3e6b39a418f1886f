import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where a remote gets the access key of a storage service from.
///
/// ```swift
/// let remote = try S3Remote(
///     "https://s3.example/backups/notes", credentials: .file("/etc/notes/credentials"))
/// ```
///
/// Nothing is read before the first request. What was read is used until five minutes before it
/// expires, and is read once more if the service says that the key is not valid any longer. The
/// secret is in locked memory, and no description and no error shows it.
public struct S3Credentials: Sendable {
    enum Source: Sendable {
        case file(String, profile: String)
        case keys(Result<S3Keys, StoreError>)
        case command([String])
        case instance
    }

    let source: Source

    /// A file in the format of Amazon's shared credentials file.
    ///
    /// ```ini
    /// [default]
    /// aws_access_key_id = …
    /// aws_secret_access_key = …
    /// ```
    ///
    /// Its owner alone may be allowed to read it: any other file is refused with `.misuse`, and an
    /// absent file or profile with `.notFound`, at the first request.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - profile: The name in brackets above the lines that count.
    public static func file(_ path: String, profile: String = "default") -> S3Credentials {
        S3Credentials(source: .file(path, profile: profile))
    }

    /// An access key that the program has.
    ///
    /// ```swift
    /// let credentials = S3Credentials.keys(accessKeyID: id, secretAccessKey: secret)
    /// ```
    ///
    /// An empty key, or one with a blank, is refused with `.misuse` when the remote is made.
    ///
    /// - Parameters:
    ///   - accessKeyID: The name of the key.
    ///   - secretAccessKey: Its secret.
    ///   - sessionToken: The token that belongs to a temporary key. Such a key does not last;
    ///     `command` and `instance` get a new one by themselves.
    public static func keys(
        accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil
    ) -> S3Credentials {
        S3Credentials(
            source: .keys(
                Result { () throws(StoreError) in
                    try S3Keys(
                        accessKeyID: accessKeyID, secret: secretAccessKey.utf8,
                        token: sessionToken?.utf8, source: "the program")
                }))
    }

    /// A command that writes credentials, as Amazon's setting `credential_process` defines them.
    ///
    /// ```swift
    /// let credentials = S3Credentials.command(["/usr/local/bin/get-credentials", "backup"])
    /// ```
    ///
    /// It writes one object of JSON: `Version` (1), `AccessKeyId`, `SecretAccessKey`, and for a
    /// temporary key `SessionToken` and `Expiration`. It has 60 seconds, no standard input, and the
    /// standard error of this process. If it fails, the request throws `.remoteDenied`.
    /// <https://docs.aws.amazon.com/cli/latest/topic/config-vars.html>
    ///
    /// - Parameter words: The path of the program and its arguments. No shell reads them. An
    ///   argument can be seen by all users of the machine.
    public static func command(_ words: [String]) -> S3Credentials {
        S3Credentials(source: .command(words))
    }

    /// The role of the machine or of the container that the process runs in.
    ///
    /// The variables `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` and
    /// `AWS_CONTAINER_CREDENTIALS_FULL_URI` name the service of a container. Without them the
    /// machine is asked, at 169.254.169.254, by version 2 of its protocol. Where the environment
    /// names a proxy, it has to except these addresses (`no_proxy`).
    ///
    /// A request throws `.remoteDenied` if the machine has no role, and `.remoteUnavailable` if
    /// nothing answers.
    public static var instance: S3Credentials { S3Credentials(source: .instance) }
}

extension S3Credentials: CustomStringConvertible, CustomReflectable {
    /// The kind of source, without a secret.
    public var description: String {
        switch source {
        case .file(let path, let profile): "profile \(profile) of \(path)"
        case .keys: "an access key of the program"
        case .command(let words): "the command \(words.first ?? "")"
        case .instance: "the role of the machine"
        }
    }

    /// Nothing: arguments of a command may be secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
