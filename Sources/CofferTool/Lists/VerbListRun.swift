import ArgumentParser
import Foundation
import Synchronization

/// A verb for several stores, each in a run of its own.
struct VerbListRun: Sendable {
    /// The words of the verb.
    let verb: [String]
    let stores: StoreListOptions
    /// `nil` if no run gets a secret.
    let secret: SecretOptions?
    let output: OutputOptions
    /// The options of each run, without the secret and the path.
    let options: [String]
    /// Whether the terminal is asked for the secret, whatever variables name.
    var isPrompted = false
    /// The next step after an interruption.
    var again = "Run the same command again."
    /// What people read about a store that is done, from the run's report; `nil` to count it only.
    var summary: @Sendable (JSONTree) -> String? = { _ in nil }

    func run() async throws { _ = try await result() }

    /// - Returns: What was printed, if every store is done.
    func result() async throws -> VerbListResult {
        if let secret { try StandardInput.claim(stores.list == "-" ? "the list" : nil, secret) }
        let beginning = ContinuousClock.now
        let paths = try stores.all()
        let failedOut = try stores.failedOut.map { try OutputFile($0) }
        let done = Mutex([VerbListResult.Store?](repeating: nil, count: paths.count))
        let isInterrupted = try await runAll(paths) { place, store in
            done.withLock { places in
                places[place] = store
                return places.count { $0 != nil }
            }
        }
        let ends = zip(paths, done.withLock { $0 }).map { path, end in
            end ?? VerbListResult.Store(notStarted: path)
        }
        let list = VerbListResult(
            ends, seconds: RotationResult.seconds(beginning.duration(to: .now)),
            summary: summary)
        try output.print(list)
        if let failedOut {
            Terminal.warning { try failedOut.finish(paths: list.undone.map(\.path)) }
        }
        let undone = list.undone
        guard !isInterrupted else {
            throw ToolError(
                .interrupted,
                "interrupted: \(undone.count) of \(paths.count.counted("store")) were not done",
                hint: again)
        }
        guard !undone.isEmpty else { return list }
        if output.quiet, !output.json { list.tellUndone() }
        throw ExitCode(ExitStatus.partlyFailed.rawValue)
    }

    /// Runs the verb for each store.
    ///
    /// - Parameter end: Gets the place of a store in the list, and what became of it. Returns how
    ///   many stores have ended.
    /// - Returns: Whether a signal ended the list.
    private func runAll(
        _ paths: [String], _ end: @escaping @Sendable (Int, VerbListResult.Store) -> Int
    ) async throws -> Bool {
        let reporter = output.reporter(verb.joined(separator: " "), unit: "stores")
        defer { reporter.finish() }
        // Not while a signal cancels the work: nothing has begun, and the run ends at once.
        let secret = try ListSecret(
            self.secret, isPrompted: isPrompted, for: paths.count)
        do {
            try await Signals.cancelling(isLateResultKept: false) {
                let list = ListRun(jobs: stores.jobs ?? 1, failureMax: stores.stopAfterFailures)
                try await list.forEach(paths.count) { place in
                    let store = ended(paths[place], list, secret)
                    reporter.update(end(place, store), of: paths.count)
                    return store.isDone
                }
            }
            return false
        } catch is CancellationError {
            return true
        }
    }
}

extension VerbListRun {
    /// Runs the verb for a store. A run that cannot start is a failure of its store.
    private func ended(
        _ path: String, _ list: ListRun, _ secret: ListSecret
    ) -> VerbListResult.Store {
        do {
            let found = try list.run(
                verb + [ShellWord.argument(path)] + options + stores.busy.arguments
                    + secret.options, secret)
            return VerbListResult.Store(path, found)
        } catch {
            return VerbListResult.Store(path, Failure(error))
        }
    }
}

/// What a verb prints about several stores.
struct VerbListResult: Report {
    /// One store of the list.
    struct Store: Encodable, Sendable {
        let path: ReportedPath
        let exitCode: Int32?
        let code: String
        let message: String?
        let hint: String?
        let warnings: [String]?
        /// The object that the verb prints for one store.
        let report: JSONTree?

        init(notStarted path: String) {
            self.path = ReportedPath(path)
            (exitCode, code) = (nil, "notStarted")
            (message, hint, warnings, report) = ("not begun", nil, nil, nil)
        }

        init(_ path: String, _ failure: Failure) {
            self.path = ReportedPath(path)
            (exitCode, code) = (failure.exitCode, failure.code)
            (message, hint, warnings, report) = (failure.message, failure.hint, nil, nil)
        }

        init(_ path: String, _ run: StoreRun) {
            self.path = ReportedPath(path)
            exitCode = run.exitCode
            let status = ExitStatus(rawValue: run.exitCode)
            code = status.map { "\($0)" } ?? run.messages.error?.code ?? "failure"
            message = run.messages.error?.message ?? (status == .success ? nil : run.endText)
            hint = run.messages.error?.hint
            warnings = run.messages.warnings.isEmpty ? nil : run.messages.warnings
            report = try? JSONDecoder().decode(JSONTree.self, from: run.report)
        }

        var isDone: Bool { exitCode == 0 }
    }

    let stores: [Store]
    let seconds: Double
    let isDone: Bool
    /// What people read about a store that is done.
    private let summary: (JSONTree) -> String?

    private enum CodingKeys: CodingKey { case stores, seconds, isDone }

    init(_ stores: [Store], seconds: Double, summary: @escaping (JSONTree) -> String?) {
        self.stores = stores
        self.summary = summary
        self.seconds = seconds
        isDone = stores.allSatisfy(\.isDone)
    }

    var undone: [Store] { stores.filter { !$0.isDone } }

    var lines: [(label: String, value: String)] {
        var lines = stores.filter(\.isDone).compactMap { store in
            store.report.flatMap(summary).map { (label: "done", value: "\(store.path): \($0)") }
        }
        lines += stores.filter { $0.isDone && $0.warnings != nil }.map {
            (label: "warning", value: $0.text)
        }
        lines += undone.flatMap { store in
            let line = (label: store.label, value: store.text)
            return [line] + (store.hint.map { [(label: "hint", value: $0)] } ?? [])
        }
        lines.append((label: "stores", value: "\(stores.count)"))
        lines.append((label: "done", value: "\(stores.count - undone.count)"))
        for (label, stores) in Dictionary(grouping: undone, by: \.label).sorted(
            by: { $0.key < $1.key })
        {
            let reasons =
                stores.contains(where: \.hasReason) ? " (\(Self.reasons(of: stores)))" : ""
            lines.append((label: label, value: "\(stores.count)\(reasons)"))
        }
        lines.append((label: "time", value: "\(seconds) s"))
        return lines
    }

    /// How many stores have each code, the most frequent first.
    private static func reasons(of stores: [Store]) -> String {
        Dictionary(grouping: stores, by: \.code).mapValues(\.count)
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    }

    /// Says what is not done, for somebody who does not read the report.
    func tellUndone() {
        for store in undone { Terminal.warn(store.text) }
        Terminal.fail(
            Failure(
                ToolError(
                    .partlyFailed,
                    "\(undone.count) of \(stores.count.counted("store")) were not done")))
    }
}

extension VerbListResult.Store {
    var label: String {
        if hasReason { return "failed" }
        return exitCode == nil ? "not begun" : "damaged"
    }

    /// Whether only its code tells why it is not done.
    var hasReason: Bool { exitCode != nil && exitCode != ExitStatus.damaged.rawValue }

    var text: String {
        let texts = [exitCode == nil ? nil : message].compactMap(\.self) + (warnings ?? [])
        return path.before(texts.joined(separator: "; "))
    }
}
