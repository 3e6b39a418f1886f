/// Decides after which rows an export reports its progress, because asking the clock after each row
/// would take longer than the row.
struct ExportProgress {
    private static let rowCount = 1024
    private static let byteCount = 1 << 20
    private var reported = 0

    /// Whether a fixed number of rows, or of bytes, was written since the last report.
    mutating func isDue(_ rowCount: Int, _ output: StandardOutput) -> Bool {
        let isDue =
            rowCount.isMultiple(of: Self.rowCount)
            || output.writtenCount - reported >= Self.byteCount
        if isDue { reported = output.writtenCount }
        return isDue
    }
}
