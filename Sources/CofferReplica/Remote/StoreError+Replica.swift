import Coffer

extension StoreError.Code {
    /// The remote does not keep what it promises: two creators of one name both succeed, or what
    /// was read is not what was written. No replica is possible there.
    public static let remoteUnfit = Self("remoteUnfit")
    /// The remote does not answer, or says that it cannot now: try again.
    public static let remoteUnavailable = Self("remoteUnavailable")
    /// The remote refuses the credentials, or does not allow them to do this.
    public static let remoteDenied = Self("remoteDenied")
    /// The remote has records of another store.
    public static let remoteOfAnotherStore = Self("remoteOfAnotherStore")
    /// The objects of the remote are not as their owner wrote them, or some are missing.
    public static let remoteDamaged = Self("remoteDamaged")
    /// Another owner has this remote, or another process of this machine is at work for the same
    /// one. The owner may have stopped long ago.
    public static let ownedElsewhere = Self("ownedElsewhere")
    /// Another process has taken over this replica: nothing more goes to the remote from here. The
    /// store itself goes on.
    public static let fenced = Self("fenced")
    /// The remote has records that are newer than the file.
    public static let remoteAhead = Self("remoteAhead")
}
