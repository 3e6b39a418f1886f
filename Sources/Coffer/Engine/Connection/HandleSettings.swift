/// The user's settings of a connection that only its handle knows, such as functions, limits and
/// the trace. A handle that is reopened, as by a change of the key, gets them again.
struct HandleSettings {
    typealias Apply = (Handle) throws(StoreError) -> Void

    private var settings: [(name: String, apply: Apply)] = []

    /// Adds a setting under a name. It replaces an earlier setting of that name.
    mutating func set(_ name: String, _ apply: @escaping Apply) {
        remove(name)
        settings.append((name, apply))
    }

    mutating func remove(_ name: String) {
        settings.removeAll { $0.name == name }
    }

    func apply(to handle: Handle) throws(StoreError) {
        for setting in settings { try setting.apply(handle) }
    }
}

extension Connection {
    /// Applies a setting to the open handle, if there is one, and to every handle that replaces it.
    ///
    /// - Throws: Errors of `apply`. The setting is then not kept for later handles.
    func set(
        _ name: String, _ apply: @escaping HandleSettings.Apply
    ) throws(StoreError) {
        if let handle { try apply(handle) }
        settings.set(name, apply)
    }

    /// Applies the user's settings to a fresh handle, and runs the configuration's `prepare`.
    ///
    /// - Throws: Errors of the settings; a `StoreError` that `prepare` throws; `.misuse`, with the
    ///   cause, for any other error of `prepare`.
    func prepareHandle() throws(StoreError) {
        do {
            let handle = try current()
            interruptHandle.aim(at: handle)
            if !handle.isAdopted { busyPolicy.install(on: handle) }
            try settings.apply(to: handle)
            try configuration.prepare?(self)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.misuse, "the configuration's prepare failed", cause: error)
        }
    }
}
