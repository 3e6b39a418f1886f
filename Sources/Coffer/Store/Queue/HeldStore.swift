#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The store transactions whose bodies are running on the current thread, innermost first.
///
/// A body is synchronous and stays on its thread from start to end, so a list per thread is exact;
/// a task-local would also be inherited by tasks that the body starts, which are not inside it.
final class HeldStore {
    enum Kind { case reading, writing }

    /// A transaction that is open for a body.
    struct Transaction {
        let kind: Kind
        let scope: TransactionScope
    }

    private let store: ObjectIdentifier
    private let kind: Kind
    /// `nil` while a compaction holds the gate, without a transaction that others could join.
    private let scope: TransactionScope?
    /// The gate at which others wait for this body to end.
    private let gate: Gate
    /// The gate at which a snapshot's other reads wait, if this is a snapshot's read.
    private let snapshotGate: Gate?
    private let outer: HeldStore?

    private init(
        store: ObjectIdentifier, kind: Kind, scope: TransactionScope?, gate: Gate,
        snapshotGate: Gate?, outer: HeldStore?
    ) {
        self.store = store
        self.kind = kind
        self.scope = scope
        self.gate = gate
        self.snapshotGate = snapshotGate
        self.outer = outer
    }

    /// Whether the current thread is inside a body of any store.
    static var isInsideAny: Bool { pthread_getspecific(threadKey) != nil }

    /// The gates at which others wait for the current thread, including those of outer bodies.
    static var gatesHeld: [ObjectIdentifier] {
        var gates: [ObjectIdentifier] = []
        var held = innermost
        while let current = held {
            gates.append(ObjectIdentifier(current.gate))
            if let snapshotGate = current.snapshotGate {
                gates.append(ObjectIdentifier(snapshotGate))
            }
            held = current.outer
        }
        return gates
    }

    /// The innermost transaction of `store` whose body runs on the current thread; `nil` if there
    /// is none.
    static func current(of store: ObjectIdentifier) -> Transaction? {
        var held = innermost
        while let candidate = held {
            if candidate.store == store, let scope = candidate.scope {
                return Transaction(kind: candidate.kind, scope: scope)
            }
            held = candidate.outer
        }
        return nil
    }

    /// Runs `body` as the body of a transaction: meanwhile `current(of:)` and `gatesHeld` include
    /// that transaction on this thread.
    ///
    /// - Throws: What `body` throws.
    static func hold<T>(
        _ store: ObjectIdentifier, kind: Kind, scope: TransactionScope, at gate: Gate,
        snapshotGate: Gate? = nil, _ body: () throws -> T
    ) rethrows -> T {
        let outer = innermost
        innermost = HeldStore(
            store: store, kind: kind, scope: scope, gate: gate, snapshotGate: snapshotGate,
            outer: outer)
        defer { innermost = outer }
        return try body()
    }

    /// Runs `body`, which holds `gate` without a transaction that others could join: meanwhile
    /// `gatesHeld` includes the gate on this thread.
    ///
    /// - Throws: What `body` throws.
    static func hold<T, E: Error>(_ gate: Gate, _ body: () throws(E) -> T) throws(E) -> T {
        let outer = innermost
        innermost = HeldStore(
            store: ObjectIdentifier(gate), kind: .writing, scope: nil, gate: gate,
            snapshotGate: nil, outer: outer)
        defer { innermost = outer }
        return try body()
    }

    // MARK: One value for each thread

    private static let threadKey: pthread_key_t = {
        var key = pthread_key_t()
        // Fails only when the process has used up its keys (1 024 on Linux). The key would then be
        // 0, which belongs to somebody else.
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "no thread-specific key is left in this process")
        return key
    }()

    private static var innermost: HeldStore? {
        get {
            guard let pointer = pthread_getspecific(threadKey) else { return nil }
            return Unmanaged<HeldStore>.fromOpaque(pointer).takeUnretainedValue()
        }
        set {
            if let old = pthread_getspecific(threadKey) {
                Unmanaged<HeldStore>.fromOpaque(old).release()
            }
            pthread_setspecific(threadKey, newValue.map { Unmanaged.passRetained($0).toOpaque() })
        }
    }
}
