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
