/// One run of `Store.salvage`.
///
/// 1. Every page is authenticated.
/// 2. The trees of the schema and of every table are walked from their roots. A page that fails is
///    a gap.
/// 3. What is below a damaged page is found as pages to which nothing leads. They belong to a table
///    if no other tree lacks a branch and every free page is known; otherwise nobody can say whose
///    they are.
/// 4. The new store is checked as every other copy, and only then gets its name.
struct Salvage {
    let configuration: Configuration
    let monitor: CopyMonitor

    func run(
        _ path: String, key: borrowing StoreKey, to newPath: String, newKey: borrowing StoreKey
    ) throws(StoreError) -> SalvageReport {
        try key.check()
        try newKey.check()
        let location = try CopyTarget.location(newPath)
        let file = try FileLocation(path)
        let source = try SalvageSource(file, key: key, configuration, monitor)
        defer { source.close() }
        let profile = try newProfile(of: source)
        let target = try CopyTarget(
            at: location, of: file, key: CopyKey(new: newKey, profile: profile, configuration),
            configuration: configuration)
        let filling = try fill(target, from: source)
        let result = try target.check(against: nil, monitor)
        try target.adopt()
        return filling.report(CopyReport(result, profile: profile))
    }

    /// The profile of the damaged store, unless only a newer engine writes it.
    private func newProfile(of source: SalvageSource) throws(StoreError) -> CipherProfile {
        let capabilities = try Engine.capabilities
        let profile = configuration.profile ?? source.cipher.profile
        guard capabilities.supports(profile) else { return capabilities.defaultProfile }
        return profile
    }

    private func fill(
        _ target: borrowing CopyTarget, from source: SalvageSource
    ) throws(StoreError) -> SalvageFilling {
        let walk = try TreeWalk(source, monitor)
        let handle = try target.openEmpty(canUndo: true)
        defer { handle.close() }
        let filling = try SalvageFilling(source, walk, handle, monitor)
        try filling.run()
        return filling
    }
}
