import Foundation
import Testing

/// A store that belongs to somebody, and another user of the same machine; only root can play both.
enum OtherUser {
    /// Whether this process may become others; elsewhere such tests do not run.
    static let isPlayable = geteuid() == 0

    static let reason: Comment = "plays two users, which takes root"

    /// The owner of what `giveAway` is called for: user and group `nobody`, of all systems.
    static let owner = "nobody"
    private static let ownerNumber = 65534

    /// Runs a program as the other user: in a group of its own, and in that of the owner.
    static let sharing = ["setpriv", "--reuid=1", "--regid=1", "--groups=\(ownerNumber)"]
    /// The same where what it makes belongs to the owner's group too.
    static let inGroup = ["setpriv", "--reuid=1", "--regid=\(ownerNumber)", "--clear-groups"]
    /// Runs a program as the owner.
    static let themselves = [
        "setpriv", "--reuid=\(ownerNumber)", "--regid=\(ownerNumber)", "--clear-groups",
    ]
    /// The same as `sharing`, without anything in common.
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
