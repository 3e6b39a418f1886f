/// What the user has set on a connection and a handle knows for itself only: functions, limits,
/// the busy policy. A handle that is opened anew, as by a change of the key, gets them again.
struct HandleSettings {
    typealias Apply = (Handle) throws(StoreError) -> Void

    private var settings: [(name: String, apply: Apply)] = []

    /// A later setting of the same name takes the place of the earlier one.
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
    /// Sets something on the open handle, and on every one that takes its place.
    func set(
        _ name: String, _ apply: @escaping HandleSettings.Apply
    ) throws(StoreError) {
        if let handle { try apply(handle) }
        settings.set(name, apply)
    }

    /// Gives a fresh handle what the user has set, and lets the configuration's `prepare` run.
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
