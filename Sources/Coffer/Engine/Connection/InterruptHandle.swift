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
    /// The address of the open `sqlite3`, 0 while there is none. The mutex keeps others from
    /// closing it while it is used.
    private let address = Mutex<UInt>(0)

    init() {}

    /// Ends the running statement with `.cancelled`. An interrupted INSERT, UPDATE or DELETE rolls
    /// back its whole transaction. A change of the key continues: the engine does not check for
    /// interrupts.
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

    /// Makes `interrupt()` do nothing from now on, unless it already refers to another handle. A
    /// handle calls this before it closes.
    func release(_ handle: Handle) {
        let old = UInt(bitPattern: handle.db)
        address.withLock { if $0 == old { $0 = 0 } }
    }
}
