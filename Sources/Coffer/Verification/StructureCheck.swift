/// SQLite's checks of the structure, as a part of `verify`: `integrity_check`, and then
/// `foreign_key_check`.
struct StructureCheck: Sendable {
    let core: StoreCore

    /// The problems that one of the checks names, or the error that ended it.
    typealias Finding = Result<[String], any Error>

    /// Runs both checks, each in a read transaction of its own.
    ///
    /// - Returns: The findings of both, or only of the first if its error says nothing about the
    ///   structure.
    func run(_ cancellation: Cancellation?) -> [Finding] {
        let first = finding(cancellation) { tx in
            try tx.rows("PRAGMA integrity_check").map { try $0.get(0) }.filter { $0 != "ok" }
        }
        if case .failure(let error) = first, (error as? StoreError)?.isOfContent != true {
            return [first]
        }
        let second = finding(cancellation) { tx in
            try tx.rows("PRAGMA foreign_key_check").map { row in
                let rowID = try row.get(1, as: Int?.self).map(String.init) ?? "without row id"
                return "row \(rowID) of \(try row.get(0, as: String.self)) refers to a row of "
                    + "\(try row.get(2, as: String.self)) that does not exist"
            }
        }
        return [first, second]
    }

    private func finding(
        _ cancellation: Cancellation?, _ problems: (inout ReadTransaction) throws -> [String]
    ) -> Finding {
        Finding { try core.read(cancellation: cancellation, problems) }
    }
}

extension VerificationReport {
    /// Adds what the checks of the structure found. Call it when the pages are checked: whether one
    /// is damaged decides what an error says.
    ///
    /// If SQLite cannot compile or run a check although no page is damaged, sets
    /// `structureFailure`. If damage ends a check, that is a problem as well.
    ///
    /// - Throws: Errors of a read that say nothing about the structure, such as `.busy`.
    mutating func take(_ findings: [StructureCheck.Finding]) throws {
        var isChecked = true
        for finding in findings {
            if try !take(finding) { isChecked = false }
        }
        isStructureChecked = isChecked
    }

    /// - Returns: Whether the check ran to its end.
    private mutating func take(_ finding: StructureCheck.Finding) throws -> Bool {
        do {
            problems += try finding.get()
            return true
        } catch let error as StoreError where error.isInability && damagedPages.isEmpty {
            // For example, the schema needs a collation or function that only the program
            // registers. If a page had failed in the transaction, the error would be `.damaged`.
            structureFailure = error.message
            return false
        } catch let error as StoreError
            where [.damaged, .sql].contains(error.code)
            || error.code == .io && !damagedPages.isEmpty
        {
            // SQLCipher 4 fails the pragma itself.
            let text = "the check of the structure did not finish: \(error.message)"
            if !problems.contains(text) { problems.append(text) }
            return false
        }
    }
}

extension StructureCheck.Finding {
    /// Whether the check got no connection or no lock.
    var isBusy: Bool {
        if case .failure(let error as StoreError) = self { error.code == .busy } else { false }
    }
}

extension StoreError {
    /// Whether a check that ends with it may say something about the content of the file.
    fileprivate var isOfContent: Bool { [.damaged, .sql, .io].contains(code) }

    /// Whether SQLite could not compile or run one of its own checks. If the pages are authentic,
    /// the schema needs a collation or a function that this program does not have.
    var isInability: Bool { code == .sql && (resultCode ?? 0) & 0xff == 1 }
}
