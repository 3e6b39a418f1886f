import Coffer

/// A failure of the tool itself; the library reports its failures as `StoreError`.
struct ToolError: Error {
    let status: ExitStatus
    /// One sentence in lower case, without a full stop.
    let message: String
    /// The next step for the user.
    let hint: String?

    init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
        self.status = status
        self.message = message
        self.hint = hint
    }
}

/// The report of an error, and the program's exit code.
struct Failure: Encodable {
    let code: String
    let message: String
    let hint: String?
    /// Numbers of damaged pages, as far as known.
    let pages: [Int]
    let exitCode: Int32

    init(_ error: any Error) {
        if let error = error as? StoreError {
            code = "\(error.code)"
            let said = Self.message(of: error)
            message = error.code == .cancelled ? "interrupted" : Self.inToolWords(said)
            hint = error.hint.map(Self.inToolWords)
            pages = error.pages
            exitCode = ExitStatus(error.code).rawValue
        } else {
            let error = Self.toolError(error)
            code = "\(error.status)"
            message = error.message
            hint = error.hint
            pages = []
            exitCode = error.status.rawValue
        }
    }

    /// Names of library functions, and the verbs and options that users know them by.
    private static let words = [
        ("Store.upgrade, or with `coffer upgrade`", "coffer upgrade"),
        ("Store.upgrade, or `coffer upgrade`", "coffer upgrade"),
        ("Store.upgrade", "coffer upgrade"), ("Store.encrypt", "coffer encrypt"),
        ("busyTimeout", "--busy-timeout"), ("rekey(to:)", "coffer rekey"),
        ("setKey(_:)", "the --passphrase-… or --raw-key-fd option"),
        ("store.write { }", "--write"),
    ]

    private static func inToolWords(_ text: String) -> String {
        words.reduce(text) { $0.replacing($1.0, with: $1.1) }
    }

    private static func toolError(_ error: any Error) -> ToolError {
        switch error {
        case let error as ToolError: error
        case is CancellationError: ToolError(.interrupted, "interrupted")
        default: ToolError(.failure, "\(error)")
        }
    }

    private static func message(of error: StoreError) -> String {
        var message = error.message
        if let table = error.table {
            message += " (table \(table)\(error.column.map { ", column \($0)" } ?? ""))"
        }
        if !error.pages.isEmpty {
            let pages = error.pages.map(String.init).joined(separator: ", ")
            message += error.pages.count == 1 ? " (page \(pages))" : " (pages \(pages))"
        }
        return message
    }
}
