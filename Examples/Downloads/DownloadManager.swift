import Foundation

/// Fetches the downloads of a folder, many at once, and obeys the user meanwhile.
///
/// The store is the queue: the manager runs what waits there, and a manager that is killed has
/// nothing to save. Call `close()` at the end.
actor DownloadManager {
    struct Settings: Sendable {
        /// The greatest number of downloads that run at once.
        var runningCount = 8
        /// The number of bytes after which the breakpoint of a download moves on.
        var stepByteCount = 1_048_576
        /// The number of attempts without a byte after which only the user tries again.
        var attemptCount = 6
        /// The seconds before the second attempt. Each further one waits twice as long.
        var delay: TimeInterval = 1
    }

    private struct Running {
        let task: Task<Void, Never>
        let transfer: CurrentTransfer
    }

    nonisolated let store: DownloadStore
    private nonisolated let folder: DownloadFolder
    private var lock: FolderLock?
    private let settings: Settings
    private let network: Network

    private var running: [UUID: Running] = [:]
    private var isTurnTaken = false
    private var waitingTurns: [CheckedContinuation<Void, Never>] = []
    private var alarm: Task<Void, Never>?
    private var failure: (any Error)?
    private var isStarted = false
    /// Whether a call of `runDue` waits for its turn. It does the work of any further one.
    private var isDueAnnounced = false

    /// Opens the store and its folder, and repairs what a kill has left. `start()` begins.
    init(folder url: URL, _ settings: Settings = Settings()) async throws {
        folder = try DownloadFolder(url)
        lock = try FolderLock(folder)
        store = try await DownloadStore(folder: url)
        self.settings = settings
        network = Network(connectionCount: settings.runningCount)
        try await store.recover()
        try folder.recover(try await store.all())
    }

    /// Runs what waits, now and from now on.
    func start() async throws {
        isStarted = true
        try await runDue()
    }

    /// Waits until no download runs or will run by itself.
    ///
    /// - Throws: The error of the store or of the disk that has stopped the manager.
    func waitUntilIdle() async throws {
        do {
            for try await count in store.observeOpenCount() where count == 0 { break }
        } catch { throw failure ?? error }
        // The commit comes a moment before the end of the attempt.
        for attempt in Array(running.values) { await attempt.task.value }
        if let failure { throw failure }
    }

    /// Stops all attempts, after they have saved what they have, and closes the store.
    func close() async throws {
        isStarted = false
        alarm?.cancel()
        try await inTurn {
            for id in Array(running.keys) { await stop(id) }
        }
        network.close()
        try await store.close()
        lock = nil
    }
}

// MARK: Commands

extension DownloadManager {
    /// - Returns: The number of new downloads.
    func add(_ downloads: [Download]) async throws -> Int {
        let count = try await store.add(downloads)
        try await runDue()
        return count
    }

    /// Stops a download at its breakpoint until `resume`.
    ///
    /// - Returns: Whether it was waiting, running or failed.
    func pause(_ id: UUID) async throws -> Bool {
        try await inTurn {
            guard try await store.move(id, from: [.waiting, .running, .failed], to: .paused)
            else { return false }
            await stop(id)
            return true
        }
    }

    /// Goes on from the breakpoint of a paused download.
    ///
    /// - Returns: Whether it was paused.
    func resume(_ id: UUID) async throws -> Bool { try await wait(id, after: [.paused]) }

    /// Tries a failed or cancelled download again at once.
    ///
    /// - Returns: Whether it was failed or cancelled.
    func retry(_ id: UUID) async throws -> Bool {
        try await wait(id, after: [.failed, .cancelled])
    }

    /// Gives a download up, and deletes its bytes. Its row stays.
    ///
    /// - Returns: Whether there was something to give up.
    func cancel(_ id: UUID) async throws -> Bool {
        try await inTurn {
            try await giveUp(id, from: [.waiting, .running, .failed, .paused])
        }
    }

    /// Removes a download with its file and its manual.
    ///
    /// A kill on the way leaves a cancelled download, whose file the next start deletes.
    ///
    /// - Returns: Whether there was one.
    func remove(_ id: UUID) async throws -> Bool {
        try await inTurn {
            guard try await giveUp(id, from: Download.State.allCases) else { return false }
            try await store.remove(id)
            return true
        }
    }

    private func wait(_ id: UUID, after states: [Download.State]) async throws -> Bool {
        let isMoved = try await inTurn { try await store.move(id, from: states, to: .waiting) }
        if isMoved { try await runDue() }
        return isMoved
    }

    private func giveUp(_ id: UUID, from states: [Download.State]) async throws -> Bool {
        guard try await store.move(id, from: states, to: .cancelled) else { return false }
        await stop(id)
        guard let download = try await store.download(id) else { return false }
        try await store.forgetBytes(id)
        try folder.delete(download)
        return true
    }

    private func stop(_ id: UUID) async {
        guard let attempt = running[id] else { return }
        attempt.transfer.stop()
        await attempt.task.value
    }
}

// MARK: Attempts

extension DownloadManager {
    /// Begins as many attempts as may run, and sets the alarm for the next one that has to wait.
    private func runDue() async throws {
        guard !isDueAnnounced else { return }
        isDueAnnounced = true
        try await inTurn {
            isDueAnnounced = false
            guard isStarted else { return }
            let free = settings.runningCount - running.count
            for download in try await store.claim(free, at: .now) {
                // An attempt that has just failed may still be here.
                await running[download.id]?.task.value
                begin(download)
            }
            alarm?.cancel()
            // The end of an attempt calls this again.
            guard running.count < settings.runningCount,
                let time = try await store.nextTry()
            else { return }
            alarm = Task {
                let delay = max(0.001, time.timeIntervalSinceNow)
                try? await Task.sleep(for: .seconds(delay))
                guard !Task.isCancelled else { return }
                // The next alarm must not cancel the task that sets it.
                alarm = nil
                await runDueOrFail()
            }
        }
    }

    private func runDueOrFail() async {
        do { try await runDue() } catch { await fail(error) }
    }

    private func begin(_ download: Download) {
        let attempt = Attempt(
            store: store, folder: folder, network: network, stepByteCount: settings.stepByteCount)
        let task = Task {
            await run(attempt, download)
            running[download.id] = nil
            // Not awaited: this takes a turn, and a turn may wait for this task.
            Task { await runDueOrFail() }
        }
        running[download.id] = Running(task: task, transfer: attempt.current)
    }

    private func run(_ attempt: Attempt, _ claimed: Download) async {
        let id = claimed.id
        do {
            var download: Download? = claimed
            while let current = download, current.state == .running {
                do {
                    try await attempt.run(current)
                    return
                } catch TransferError.stopped {
                    return
                } catch TransferError.tooFarAhead {
                    download = try await store.download(id)
                } catch let error as TransferError {
                    return try await report(error, id)
                }
            }
        } catch { await fail(error) }
    }

    private func report(_ error: TransferError, _ id: UUID) async throws {
        let (isTransient, settings) = (error.isTransient, settings)
        try await store.fail(id, "\(error)", at: .now) { count in
            guard isTransient, count < settings.attemptCount else { return nil }
            // A part at random, so that not all come back at the same moment.
            return settings.delay * pow(2, Double(count - 1)) * Double.random(in: 0.75...1.25)
        }
    }

    /// Ends the manager: without store or disk it cannot go on.
    private func fail(_ error: any Error) async {
        guard isStarted else { return }
        failure = failure ?? error
        isStarted = false
        for attempt in running.values { attempt.transfer.stop() }
        try? await store.close()
    }
}

// MARK: Turns

extension DownloadManager {
    /// Runs commands one after the other, since an actor takes the next one at each `await`.
    private func inTurn<T>(_ command: () async throws -> T) async throws -> T {
        if isTurnTaken {
            await withCheckedContinuation { waitingTurns.append($0) }
        }
        isTurnTaken = true
        defer {
            // The turn goes to the next one without a gap.
            isTurnTaken = !waitingTurns.isEmpty
            if isTurnTaken { waitingTurns.removeFirst().resume() }
        }
        do { return try await command() } catch { throw failure ?? error }
    }
}
