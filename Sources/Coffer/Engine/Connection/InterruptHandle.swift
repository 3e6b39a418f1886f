import CSQLCipher
import Synchronization

/// Stops what a connection runs, from any thread.
///
/// ```swift
/// let interrupt = connection.interruptHandle
/// Task { try await Task.sleep(for: .seconds(2)); interrupt.interrupt() }
/// let rows = try connection.rows("SELECT … a long query …")   // throws .cancelled
/// ```
///
/// It opens nothing, and does nothing while its connection is closed or runs nothing.
public final class InterruptHandle: Sendable {
    /// The address of the open `sqlite3`, 0 while there is none. Under the mutex, so that nobody
    /// closes it while it is used.
    private let address = Mutex<UInt>(0)

    init() {}

    /// Ends the statement that runs, with `.cancelled`. An INSERT, UPDATE or DELETE takes its whole
    /// transaction with it. A change of the key goes on: the engine does not ask.
    ///
    /// - Note: The corresponding C function is `sqlite3_interrupt`.
    public func interrupt() {
        address.withLock { address in
            if let db = OpaquePointer(bitPattern: address) { sqlite3_interrupt(db) }
        }
    }

    func aim(at handle: Handle) {
        let new = UInt(bitPattern: handle.db)
        address.withLock { $0 = new }
        handle.interruptHandle = self
    }

    /// Called by a handle before it closes; another one may have taken its place meanwhile.
    func release(_ handle: Handle) {
        let old = UInt(bitPattern: handle.db)
        address.withLock { if $0 == old { $0 = 0 } }
    }
}
