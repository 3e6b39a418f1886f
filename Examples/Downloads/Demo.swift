import Foundation

/// 64 downloads from a server that breaks connections, with each command of the manager, and a
/// process that is killed three times.
struct Demo {
    static let settings = DownloadManager.Settings(
        runningCount: 64, stepByteCount: 65_536, attemptCount: 6, delay: 0.05)

    var checks = Checks()
    private let folder: DownloadFolder
    private let seed: UInt64
    private let server: BreakingServer

    init(_ url: URL, seed: UInt64) throws {
        folder = try DownloadFolder(url)
        self.seed = seed
        server = try BreakingServer(fileCount: 64, seed: seed)
    }

    mutating func run() async throws {
        Terminal.write("store \(folder.url.appending(path: "downloads.db").path), seed \(seed)\n")
        let created = Date(timeIntervalSince1970: 1_769_936_400)
        let downloads = (0..<server.fileCount).map { index in
            Download(
                server.url(index), page: server.page(index), created: created + Double(index) * 60)
        }
        let manager = try await DownloadManager(folder: folder.url)
        checks.equal("added", try await manager.add(downloads), server.fileCount)
        checks.equal("added once more", try await manager.add(downloads), 0)
        try await manager.close()
        for part in 1...3 { try await kill(part) }
        try await command()
        try await compare()
    }
}

// MARK: The kills

extension Demo {
    /// The bytes of all files.
    private var total: Int { (0..<server.fileCount).map { server.content($0).count }.reduce(0, +) }

    /// Kills a process that fetches, and looks at what it has left.
    private mutating func kill(_ part: Int) async throws {
        let child = try ChildProcess(["fetch-for-demo", folder.url.path])
        // The list hears of the commits of another process, too.
        let watching = try await DownloadStore(folder: folder.url)
        let list = DownloadList(watching)
        if Terminal.isThere { await list.start() }
        let target = try await watching.bytesDone() + total / 12
        try await waitForBytes(target, watching) { child.isRunning }
        if Terminal.isThere { try await list.stop() }
        try await watching.close()
        checks.that("kill -9 ends fetch \(part)", child.kill())

        let store = try await DownloadStore(folder: folder.url)
        var (claimed, wrong) = (0, 0)
        for download in try await store.all() {
            let index = server.index(download)
            let file = download.state == .done ? settled(download) : folder.partial(download.id)
            let there = (try? Data(contentsOf: file)) ?? Data()
            let content = server.content(index, download.version)
            claimed += download.bytesDone
            let isTrue =
                there.count >= download.bytesDone
                && there.prefix(download.bytesDone) == Data(content.prefix(download.bytesDone))
            wrong += isTrue ? 0 : 1
        }
        try await store.close()
        checks.equal("breakpoints ahead of their files", wrong, 0)
        Terminal.write("    at \(claimed / 1000) of \(total / 1000) kB\n")
    }

    private struct Ended: Error {}

    /// Waits until the breakpoints have come so far.
    private func waitForBytes(
        _ count: Int, _ store: DownloadStore, while isRunning: () -> Bool
    ) async throws {
        while try await store.bytesDone() < count {
            guard isRunning() else { throw Ended() }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// A finished file has its name, or gets it at the next start.
    private func settled(_ download: Download) -> URL {
        let file = folder.file(download)
        return FileManager.default.fileExists(atPath: file.path)
            ? file : folder.partial(download.id)
    }
}

// MARK: The commands

extension Demo {
    /// Waits until the server holds. Throws the manager's error if that comes first.
    private func waitUntilHeld(_ manager: DownloadManager) async throws {
        let server = server
        try await withThrowingTaskGroup { group in
            group.addTask { try await manager.waitUntilIdle() }
            group.addTask {
                while !server.isHeld { try await Task.sleep(for: .milliseconds(5)) }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    private mutating func command() async throws {
        let manager = try await DownloadManager(folder: folder.url, Self.settings)
        let list = DownloadList(manager.store)
        if Terminal.isThere { await list.start() }
        server.hold(after: total / 16)
        try await manager.start()
        try await waitUntilHeld(manager)
        let (paused, cancelled) = try await stopSome(manager)
        server.release()
        let before = try await breakpoints(manager, paused)
        try await manager.waitUntilIdle()
        if Terminal.isThere { try await list.stop() }
        checks.equal("paused", paused.count, 8)
        checks.that(
            "and no byte came for them meanwhile",
            try await breakpoints(manager, paused) == before)
        checks.equal("cancelled", cancelled.count, 4)
        let left = try await manager.store.all().filter { cancelled.contains($0.id) }
        checks.that(
            "and nothing of them is left",
            left.allSatisfy { $0.state == .cancelled && $0.bytesDone == 0 && !exists($0) })
        try await expect(manager, [.done: 50, .paused: 8, .cancelled: 4, .failed: 2])

        server.repair()
        for download in try await manager.store.all() where download.state == .failed {
            checks.that(
                "retry after \(download.reason ?? "")", try await manager.retry(download.id))
        }
        for id in paused { _ = try await manager.resume(id) }
        for id in cancelled.prefix(2) { _ = try await manager.retry(id) }
        if Terminal.isThere { await list.start() }
        try await manager.waitUntilIdle()
        if Terminal.isThere { try await list.stop() }
        try await expect(manager, [.done: 62, .cancelled: 2])
        try await remove(cancelled.suffix(2) + paused.prefix(2), manager)
        try await manager.close()
    }

    /// Pauses eight that are under way, and cancels four, in an order that the seed determines.
    private func stopSome(_ manager: DownloadManager) async throws -> (paused: [UUID], [UUID]) {
        var random = SplitMix(seed)
        var (paused, cancelled): ([UUID], [UUID]) = ([], [])
        // The first six are those with habits.
        let candidates = try await manager.store.all().dropFirst(6).shuffled(using: &random)
        for download in candidates {
            if paused.count < 8 {
                if try await manager.pause(download.id) { paused.append(download.id) }
            } else if cancelled.count < 4 {
                if try await manager.cancel(download.id) { cancelled.append(download.id) }
            }
        }
        return (paused, cancelled)
    }

    /// Removes downloads, and checks that row, file and manual are gone.
    private mutating func remove(_ ids: [UUID], _ manager: DownloadManager) async throws {
        let downloads = try await manager.store.all().filter { ids.contains($0.id) }
        let before = try await manager.store.manuals()
        for id in ids where try await !manager.remove(id) { checks.that("remove", false) }
        let after = try await manager.store.manuals()
        checks.equal("removed", downloads.count, 4)
        checks.equal("and with them manuals", before.count - after.count, 2)
        let rows = try await manager.store.all().filter { ids.contains($0.id) }
        checks.that("and all rows and files", rows.isEmpty && !downloads.contains(where: exists))
    }

    private func exists(_ download: Download) -> Bool {
        [folder.file(download), folder.partial(download.id)]
            .contains { FileManager.default.fileExists(atPath: $0.path) }
    }

    private func breakpoints(_ manager: DownloadManager, _ ids: [UUID]) async throws -> [Int] {
        try await manager.store.all().filter { ids.contains($0.id) }.map(\.bytesDone)
    }

    private mutating func expect(
        _ manager: DownloadManager, _ counts: [Download.State: Int]
    ) async throws {
        let found = Dictionary(grouping: try await manager.store.all(), by: \.state)
            .mapValues(\.count)
        for state in Download.State.allCases where found[state] != nil || counts[state] != nil {
            checks.equal("    \(state)", found[state] ?? 0, counts[state] ?? 0)
        }
    }
}

// MARK: The end

extension Demo {
    /// Compares each file and each manual with the server's.
    private mutating func compare() async throws {
        let store = try await DownloadStore(folder: folder.url)
        let downloads = try await store.all()
        let manuals = try await store.manuals()
        try await store.close()
        let equal = try downloads.filter { download in
            let content = server.content(server.index(download))
            return try Data(contentsOf: folder.file(download)) == Data(content)
                && download.bytesDone == content.count && download.bytesTotal == content.count
        }
        checks.equal("files that equal the server's, byte by byte", equal.count, 60)
        checks.that(
            "each has its manual",
            manuals.count == 60
                && downloads.allSatisfy {
                    manuals[$0.id] == server.pageText(server.index($0)).count
                })
        checks.equal(
            "files in the folder",
            try FileManager.default.contentsOfDirectory(
                atPath: folder.url.appending(path: "files").path
            ).count, 60)
        let counts = server.counts
        checks.that("connections broke", counts.broken > 0)
        checks.that("and went on at breakpoints", counts.resumed > 0)
        checks.that("a changed file began again", counts.restarted > 0)
        Terminal.write(
            """
            server: \(counts.requests) requests, \(counts.broken) broken, \
            \(counts.resumed) resumed, \(counts.restarted) begun again, \(counts.refused) refused
            server: \(counts.bytesSent / 1000) kB sent of \(total / 1000) kB

            """)
    }
}

extension BreakingServer {
    /// The number of a download's file.
    func index(_ download: Download) -> Int {
        Int(download.url.deletingPathExtension().lastPathComponent) ?? 0
    }
}

/// Prints what was found, and remembers whether something is wrong.
struct Checks {
    private(set) var isFailed = false

    mutating func that(_ name: String, _ isTrue: Bool) { line(name, isTrue ? "yes" : "NO", isTrue) }

    mutating func equal(_ name: String, _ found: Int, _ expected: Int) {
        let isEqual = found == expected
        line(name, isEqual ? "\(found)" : "\(found), NOT \(expected)", isEqual)
    }

    private mutating func line(_ name: String, _ value: String, _ isTrue: Bool) {
        Terminal.write(name.padding(toLength: 52, withPad: " ", startingAt: 0) + value + "\n")
        if !isTrue { isFailed = true }
    }
}
