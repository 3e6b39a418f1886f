import CSQLCipher

/// How a connection reacts when another one holds the lock that it needs.
public enum BusyPolicy: Sendable {
    /// Fails with `.busy` at once.
    case none
    /// Retries for this long, then fails with `.busy`. Rounded up to whole milliseconds.
    case timeout(Duration)
    /// Calls the closure before each retry, first with 0; `false` fails with `.busy`.
    ///
    /// The closure runs inside the engine: it may only sleep or give up, and must not use any
    /// connection. SQLite does not call it where waiting would be a deadlock.
    case custom(@Sendable (_ attempt: Int) -> Bool)

    /// The time that it waits: zero for `none`; `nil` for `custom`, whose closure decides.
    public var timeout: Duration? {
        switch self {
        case .none: .zero
        case .timeout(let duration): duration
        case .custom: nil
        }
    }

    /// Makes the handle react as this policy says, instead of as any earlier one.
    ///
    /// - Note: The corresponding C functions are `sqlite3_busy_timeout` and `sqlite3_busy_handler`.
    func install(on handle: Handle) {
        switch self {
        case .none:
            sqlite3_busy_timeout(handle.db, 0)
            handle.hooks.busyHandler = nil
        case .timeout(let duration):
            sqlite3_busy_timeout(handle.db, Int32(clamping: duration.millisecondsRoundedUp))
            handle.hooks.busyHandler = nil
        case .custom(let goesOn):
            let handler = BusyHandler(goesOn)
            sqlite3_busy_handler(
                handle.db, askBusyHandler, Unmanaged.passUnretained(handler).toOpaque())
            // Only now: the engine no longer refers to the previous handler.
            handle.hooks.busyHandler = handler
        }
    }
}

/// A closure that the engine can point at; the handle keeps it alive.
final class BusyHandler: Sendable {
    let goesOn: @Sendable (Int) -> Bool

    init(_ goesOn: @escaping @Sendable (Int) -> Bool) {
        self.goesOn = goesOn
    }
}

private func askBusyHandler(context: UnsafeMutableRawPointer?, attempt: Int32) -> Int32 {
    guard let context else { return 0 }
    let handler = Unmanaged<BusyHandler>.fromOpaque(context).takeUnretainedValue()
    return handler.goesOn(Int(attempt)) ? 1 : 0
}

extension Duration {
    /// Whole milliseconds, never 0 for a duration above zero, which would mean not to wait.
    fileprivate var millisecondsRoundedUp: Int {
        let isWhole = components.attoseconds % 1_000_000_000_000_000 == 0
        return isWhole || self < .zero ? milliseconds : milliseconds + 1
    }
}
