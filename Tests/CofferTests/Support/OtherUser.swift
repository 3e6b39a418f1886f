import Foundation
import Testing

/// A store that belongs to one user, and another user of the same machine. Only root can act as
/// both.
enum OtherUser {
    /// Whether this process may act as other users; elsewhere such tests do not run.
    static let isPlayable = geteuid() == 0

    static let reason: Comment = "plays two users, which takes root"

    /// The owner of files that `giveAway` gives away: user and group `nobody`, on every system.
    static let owner = "nobody"
    private static let ownerNumber = 65534

    /// Runs a program as the other user: in its own group, and in the owner's.
    static let sharing = ["setpriv", "--reuid=1", "--regid=1", "--groups=\(ownerNumber)"]
    /// Like `sharing`, but files that the program makes belong to the owner's group.
    static let inGroup = ["setpriv", "--reuid=1", "--regid=\(ownerNumber)", "--clear-groups"]
    /// Runs a program as the owner.
    static let themselves = [
        "setpriv", "--reuid=\(ownerNumber)", "--regid=\(ownerNumber)", "--clear-groups",
    ]
    /// Like `sharing`, but without anything in common with the owner.
    static let stranger = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups"]

    /// Gives all files of a folder to the owner, with these permissions, as if nobody had touched
    /// them for an hour.
    static func giveAway(_ folder: TemporaryFolder, file: Int, folder permissions: Int) throws {
        let manager = FileManager.default
        var owned: [FileAttributeKey: Any] = [:]
        if isPlayable {
            owned = [.ownerAccountID: ownerNumber, .groupOwnerAccountID: ownerNumber]
        }
        for name in try manager.contentsOfDirectory(atPath: folder.url.path) {
            let path = folder.path(name)
            try manager.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: path)
            try manager.setAttributes(
                owned.merging([.posixPermissions: file]) { $1 }, ofItemAtPath: path)
        }
        try manager.setAttributes(
            owned.merging([.posixPermissions: permissions]) { $1 }, ofItemAtPath: folder.url.path)
    }
}
