import ArgumentParser
import Coffer

/// `coffer verify`
struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks every page's authentication, then the structure.",
        discussion: """
            Covers free pages and the write-ahead log too, and may run beside programs that use \
            the store. Exit code 14 if anything is damaged.

            EXAMPLES
              coffer verify notes.db
              coffer verify notes.db --passphrase-file secret --json --progress json
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        let opened = try store.open(secret)
        let reporter = output.reporter("verify", unit: "pages")
        let found = try await Interruption.cancelling {
            defer { reporter.finish() }
            return try await opened.verify { progress in
                reporter.update(progress.pageCount, of: progress.pageCountTotal)
            }
        }
        try await opened.close()
        try output.print(VerifyResult(path: store.path, found))
        guard found.isGood else { throw ExitCode(ExitStatus.damaged.rawValue) }
    }
}

/// What `verify` says.
struct VerifyResult: Report {
    let path: String
    let isGood: Bool
    let pageCount: Int
    let frameCount: Int
    let damagedPages: [Int]
    let damagedFramePages: [Int]
    let trailingByteCount: Int
    let problems: [String]

    init(path: String, _ report: VerificationReport) {
        self.path = path
        isGood = report.isGood
        pageCount = report.pageCount
        frameCount = report.frameCount
        damagedPages = report.damagedPages
        damagedFramePages = report.damagedFramePages
        trailingByteCount = report.trailingByteCount
        problems = report.problems
    }

    var lines: [(label: String, value: String)] {
        var lines = [
            ("store", path), ("pages", "\(pageCount) checked"),
            ("log", "\(frameCount) committed frames checked"),
            ("result", isGood ? "all good" : "DAMAGED: restore from a backup"),
        ]
        lines += damagedPages.map { ("damaged page", "\($0)") }
        lines += damagedFramePages.map { ("damaged frame", $0 == 0 ? "?" : "of page \($0)") }
        if trailingByteCount > 0 { lines.append(("trailing", "\(trailingByteCount) bytes")) }
        lines += problems.map { ("problem", $0) }
        return lines
    }
}
