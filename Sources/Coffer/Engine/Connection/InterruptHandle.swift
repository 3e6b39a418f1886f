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
    /// How many bodies must stop that run on the connection.
    private let stopCount = Atomic(0)

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
        // The owner of an adopted handle may have a progress handler.
        guard !handle.isAdopted else { return }
        // Unretained: the handle keeps this object until it has closed.
        sqlite3_progress_handler(
            handle.db, Self.operationCount, askMustStop, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Ends the statement that runs, and every long one until `endStop()`.
    ///
    /// An interrupt alone may be lost: "A call to sqlite3_interrupt(D) that occurs when there are
    /// no running SQL statements is a no-op" (<https://www.sqlite.org/c3ref/interrupt.html>). So it
    /// is one between the last check of the body and the first step of its statement.
    package func stop() {
        stopCount.add(1, ordering: .relaxed)
        interrupt()
    }

    /// Must follow each `stop()` once the body has ended.
    package func endStop() {
        stopCount.subtract(1, ordering: .relaxed)
    }

    /// Whether a body that runs on the connection must stop.
    var mustStop: Bool { stopCount.load(ordering: .relaxed) > 0 }

    /// SQLite asks after so many of its operations whether to go on: some tenths of a millisecond.
    private static let operationCount: Int32 = 4_096

    /// Makes `interrupt()` do nothing from now on, unless it already refers to another handle. A
    /// handle calls this before it closes.
    func release(_ handle: Handle) {
        let old = UInt(bitPattern: handle.db)
        address.withLock { if $0 == old { $0 = 0 } }
    }
}

private func askMustStop(context: UnsafeMutableRawPointer?) -> Int32 {
    guard let context else { return 0 }
    return Unmanaged<InterruptHandle>.fromOpaque(context)._withUnsafeGuaranteedRef {
        $0.mustStop ? 1 : 0
    }
}
