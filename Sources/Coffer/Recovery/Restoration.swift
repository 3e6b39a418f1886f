/// One run of `Store.restore`: the backup is verified and copied, the copy is checked, and then it
/// takes the place of the store.
struct Restoration {
    let configuration: Configuration
    let monitor: CopyMonitor
    /// Called before each change of a name; a test makes it throw.
    var willRename: () throws(StoreError) -> Void = {}

    func run(
        from backup: String, key: borrowing StoreKey, to path: String
    ) throws -> RestoreReport {
        try key.check()
        let file = try FileLocation(path)
        let backup = try FileLocation(backup)
        guard backup.path != file.path else {
            throw StoreError(.misuse, "\(file.path) is the backup itself")
        }
        // Taken first, so that nobody waits for a copy that cannot take its place.
        var lock: ExclusiveLock?
        if case .file(_, let identity) = try file.status() {
            try OpenFiles.require(identity, isFreeAt: file.path)
            lock = try ExclusiveLock(on: file, configuration)
        }
        defer { lock?.handle.close() }
        let source = try Store(
            path: backup.path, key: key, mode: .readOnly, configuration: configuration)
        defer { try? source.close() }
        try verify(source, backup)
        guard let backup = source.core.pool.file else {
            throw StoreError(.misuse, "the backup is not a file")
        }
        let keyring = try RestoredKeyring(of: backup, at: file)
        let target = try copy(
            source.core, CopyKey(backup.cipher, keyring.area), to: file, isReplacing: lock != nil)
        let result = try target.target.check(against: nil, monitor)
        let report = CopyReport(result, profile: source.profile)
        try keyring.recordEpoch()
        guard lock != nil else {
            try target.target.adopt(movesKeyring: keyring.movesOld)
            return RestoreReport(
                copy: report, oldPath: nil, keepsKeyring: keyring.kept != nil)
        }
        let oldPath = try target.target.replace(movesKeyring: keyring.movesOld, willRename)
        if let kept = keyring.kept {
            // Without this copy the store is restored all the same, and the keyring is there.
            _ = try? KeyringFile(of: FileLocation(resolved: oldPath)).make(kept)
        }
        return RestoreReport(
            copy: report, oldPath: oldPath, keepsKeyring: keyring.kept != nil)
    }

    private func verify(_ source: Store, _ backup: FileLocation) throws {
        let verification = Verification(
            core: source.core, scope: .everything,
            progress: { progress in
                monitor.progress?(
                    CopyProgress(
                        step: .readingPages, count: progress.pageCount,
                        countTotal: progress.pageCountTotal))
            }, cancellation: monitor.cancellation)
        let report = try verification.run()
        guard report.isGood else {
            throw StoreError(
                .damaged, "the backup \(backup.path) is damaged itself; nothing was replaced",
                hint: "Take another backup. What is wrong, Store.verify and `coffer verify` list.",
                pages: (report.damagedPages + report.damagedFramePages).map(\.number))
        }
    }

    private func copy(
        _ core: StoreCore, _ key: CopyKey, to file: FileLocation, isReplacing: Bool
    ) throws -> CopyTargetBox {
        try core.read { tx in
            let source = try tx.connection().current()
            // As a new file does: what killed runs have left would become this file too.
            if isReplacing {
                for left in UnfinishedFile.all(of: file) { left.removeIfLeft() }
            }
            let target = CopyTargetBox(
                try isReplacing
                    ? CopyTarget(replacing: file, key: key, configuration)
                    : CopyTarget(
                        at: file, of: core.pool.file?.location, key: key,
                        configuration: configuration))
            // Takes the snapshot.
            _ = try source.firstText(Probe.sql)
            let handle = try target.target.openEmpty()
            defer { handle.close() }
            try PageCopy(source: source, target: handle, monitor: monitor).run()
            return target
        }
    }
}
