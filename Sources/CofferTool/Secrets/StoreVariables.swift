import Coffer

/// The variables that tell a command for a secret which store and slot it is for, so that one
/// command can serve many stores.
enum StoreVariables {
    /// The variables of a command that prints a secret. `COFFER_STORE_ID` is absent for a file that
    /// does not exist yet.
    static func of(_ path: String) -> [String] {
        let id = (try? StoreFileStatus(path: path))?.storeID
        return ["COFFER_PATH=\(ReportedPath(path).absolute)"]
            + (id.map { ["COFFER_STORE_ID=\($0)"] } ?? [])
    }

    /// The variables of a command that wraps or unwraps the secret of a slot.
    ///
    /// - Parameter path: The store, or the place of its replica.
    static func of(_ path: String, _ keyring: Keyring, slot: UInt16) -> [String] {
        let place = RemoteOptions.isService(path) ? path : ReportedPath(path).absolute
        return [
            "COFFER_PATH=\(place)", "COFFER_STORE_ID=\(keyring.storeID)", "COFFER_SLOT_ID=\(slot)",
        ]
    }
}
