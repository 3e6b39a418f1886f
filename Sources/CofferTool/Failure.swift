import Coffer

/// The report of an error, and the program's exit code.
struct Failure: Encodable {
    /// The name of the exit code.
    let code: String
    let exitCode: Int32
    /// The library's name of the failure; finer than `code` where the library tells more apart.
    let reason: String
    let message: String
    let hint: String?
    /// Numbers of damaged pages, as far as known.
    let pages: [Int]

    let status: ExitStatus

    /// Message and hint, for a warning.
    var sentence: String { message + (hint.map { ": \($0)" } ?? "") }

    private enum CodingKeys: CodingKey {
        case code, exitCode, reason, message, hint, pages
    }

    /// - Parameters:
    ///   - otherwise: The hint of an interruption that has none.
    ///   - isLast: Whether the error ends the run. A message about a lock then names its holder.
    init(_ error: any Error, otherwise: String? = nil, isLast: Bool = false) {
        // A command of the tool may fail inside a call of the library.
        let error = (error as? StoreError)?.cause as? ToolError ?? error
        if let error = error as? StoreError {
            status = ExitStatus(error)
            reason = "\(error.code)"
            let message = Self.naming(error, ToolWords.message(Self.message(of: error)))
            self.message = status == .busy && isLast ? RunFiles.namingLocked(message) : message
            let hint = error.hint.flatMap(ToolWords.hint)
            self.hint =
                switch status {
                case .damaged where error.code == .keyringDamaged:
                    Remedy.hint(hint, RunFiles.keyringRemedy)
                case .damaged: Remedy.hint(hint, RunFiles.remedy)
                case .interrupted: hint ?? otherwise
                default: hint
                }
            pages = error.pages
        } else {
            let error = Self.toolError(error)
            status = error.status
            reason = "\(error.status)"
            message =
                status == .busy && isLast ? RunFiles.namingLocked(error.message) : error.message
            hint = error.hint ?? (error.status == .interrupted ? otherwise : nil)
            pages = []
        }
        code = "\(status)"
        exitCode = status.rawValue
    }

    private static func toolError(_ error: any Error) -> ToolError {
        switch error {
        case let error as ToolError: error
        case is CancellationError: ToolError(.interrupted, "interrupted")
        default: ToolError(.failure, "\(error)")
        }
    }

    /// The message with the path of the file, where the library's message has none.
    private static func naming(_ error: StoreError, _ message: String) -> String {
        switch error.code {
        case .cancelled: "interrupted"
        case .damaged, .truncated: RunFiles.namingStore(message)
        case .full: RunFiles.namingGrowing(message)
        case .io: RunFiles.namingAll(message)
        default: message
        }
    }

    private static func message(of error: StoreError) -> String {
        var message = error.message
        if let table = error.table {
            message += " (table \(table)\(error.column.map { ", column \($0)" } ?? ""))"
        } else if let column = error.column {
            message += " (column \(column))"
        }
        if !error.pages.isEmpty {
            message += error.pages.count == 1 ? " (page " : " (pages "
            message += PageRuns.text(of: error.pages)
            // The library stops at that many.
            message += error.pages.count == 16 ? ", perhaps more)" : ")"
        }
        return message
    }
}

extension ToolError {
    /// The error of a row that cannot be written, with its number from 1.
    init(row number: Int, of table: String? = nil, _ error: StoreError) {
        let failure = Failure(error)
        let place = table.map { " of \($0)" } ?? ""
        self.init(failure.status, "row \(number)\(place): \(failure.message)", hint: failure.hint)
    }
}
