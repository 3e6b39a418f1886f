import ArgumentParser
import Coffer

/// One store, or many that a verb works on one after the other or side by side.
struct StoreListOptions: ParsableArguments {
    @Argument(help: "The files of one store or of several.", completion: .file())
    var paths: [String] = []

    @Option(
        help: ArgumentHelp(
            "Read the paths of further stores from a file, one a line, as they are; - is standard "
                + "input.",
            valueName: "path"),
        completion: .file())
    var list: String?

    @Option(
        help: ArgumentHelp(
            "How many stores of a list to work on at the same time; 1 without this option.",
            valueName: "count"))
    var jobs: Int?

    @Option(
        help: ArgumentHelp(
            "Begin no further store of a list after this many have failed.", valueName: "count"))
    var stopAfterFailures: Int?

    @Option(
        help: ArgumentHelp(
            "Write the paths of the stores that are left to do, if there are any, to a new file "
                + "for --list.",
            valueName: "path"),
        completion: .file())
    var failedOut: String?

    @OptionGroup var busy: BusyTimeoutOption

    func validate() throws {
        guard list != nil || !paths.isEmpty else {
            throw ValidationError("Name a store, or a list of stores with --list.")
        }
        guard !paths.contains("") else { throw ValidationError("The path is empty.") }
        if let jobs, !(1...64).contains(jobs) {
            throw ValidationError("--jobs must be from 1 to 64.")
        }
        if let stopAfterFailures, stopAfterFailures < 1 {
            throw ValidationError("--stop-after-failures must be at least 1.")
        }
        if let failedOut { try SecretFile.requirePath(failedOut) }
    }

    /// The only store; `nil` if an option for lists is given, or several paths.
    var single: StoreOptions? {
        guard list == nil, jobs == nil, stopAfterFailures == nil, failedOut == nil,
            paths.count == 1
        else { return nil }
        var store = StoreOptions()
        store.path = paths[0]
        store.busy = busy
        return store
    }

    /// The same, with the first path alone: the other arguments are no stores.
    var ofFirstPath: StoreListOptions {
        var options = self
        options.paths = Array(paths.prefix(1))
        return options
    }

    /// The paths of all stores, each once.
    ///
    /// - Throws: `ToolError` `.notFound` or `.io` if the list cannot be read, `.badInput` if it is
    ///   not UTF-8.
    func all() throws -> [String] {
        // Two texts that are equal may name different files.
        var known: Set<[UInt8]> = []
        let all = (paths + (try list.map(Self.lines) ?? [])).filter {
            known.insert(Array(ReportedPath($0).absolute.utf8)).inserted
        }
        guard !all.isEmpty else {
            throw ToolError(
                .badInput, "the list names no store",
                hint: "Nothing was done. Check what writes the list.")
        }
        if failedOut != nil, let path = all.first(where: { $0.utf8.contains(10) }) {
            throw ToolError(
                .usage, "\(path) has a line break, so --failed-out cannot name it",
                hint: "Leave the option or that store out.")
        }
        return all
    }

    private static func lines(of path: String) throws -> [String] {
        let file = try InputFile(path, apartFrom: "")
        let bytes = try file.readAll(maximumCount: 64 << 20)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ToolError(.badInput, "the list from \(file.name) is not UTF-8")
        }
        // It would end a path for the system, and the rest of the line would name no file.
        guard !text.utf8.contains(0) else {
            throw ToolError(
                .badInput, "the list from \(file.name) has NUL bytes",
                hint: "Write one path a line, such as with find -print instead of -print0.")
        }
        // Not \.isNewline, which also splits at characters that a file name may have.
        let lines = text.unicodeScalars.split(separator: "\n").map { String($0) }
        // The last line of a text has no end if nobody wrote one.
        let whole = text.utf8.last == 10 || lines.count < 2 ? lines[...] : lines.dropLast()
        guard whole.isEmpty || !whole.allSatisfy({ $0.unicodeScalars.last == "\r" }) else {
            throw ToolError(
                .badInput, "the lines of the list from \(file.name) end as on Windows",
                hint: "Remove the carriage returns, such as with tr -d '\\r'.")
        }
        return lines
    }
}

/// How long to wait for another process's lock.
struct BusyTimeoutOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Seconds to wait for another process's lock, before exit code 11.",
            valueName: "seconds"))
    var busyTimeout = 5.0

    func validate() throws {
        guard busyTimeout >= 0, busyTimeout <= 86_400 else {
            throw ValidationError("--busy-timeout must be from 0 to 86400 seconds.")
        }
    }

    /// The option for a run of the tool.
    var arguments: [String] { ["--busy-timeout=\(busyTimeout)"] }

    var duration: Duration { .milliseconds(Int(busyTimeout * 1000)) }
}
