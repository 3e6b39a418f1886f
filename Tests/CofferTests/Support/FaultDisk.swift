import CFaultVFS

@testable import Coffer

/// A disk that fails on demand and can lose its power: a VFS between the engine and the system.
///
/// ```swift
/// let disk = try FaultDisk()
/// var configuration = Configuration.testing()
/// configuration.vfs = disk.name
/// disk.arm(.sync, skip: 2)
/// ```
final class FaultDisk: @unchecked Sendable {
    // @unchecked: the C side has its own mutex.

    struct Kinds: OptionSet, Sendable {
        let rawValue: UInt32

        init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        private init(_ kind: fault_kind) {
            rawValue = UInt32(kind.rawValue)
        }

        static let open = Self(fault_open)
        static let read = Self(fault_read)
        static let write = Self(fault_write)
        static let truncate = Self(fault_truncate)
        static let sync = Self(fault_sync)
        static let delete = Self(fault_delete)
        static let shm = Self(fault_shm)
        static let lock = Self(fault_lock)
        static let access = Self(fault_access)
        static let size = Self(fault_size)
        /// The operations that change a file or make a change durable.
        static let changing: Self = [.write, .truncate, .sync, .delete]
    }

    enum Action: CaseIterable {
        /// Does nothing, and fails.
        case fail
        /// Writes the first half, and fails.
        case shorten
        /// Does nothing, and reports success.
        case lie
        /// Is the last operation before the power goes.
        case powerOff

        fileprivate var code: fault_action {
            switch self {
            case .fail: fault_fail
            case .shorten: fault_shorten
            case .lie: fault_lie
            case .powerOff: fault_power_off
            }
        }
    }

    private let disk: OpaquePointer

    init() throws(StoreError) {
        // Asked first, because it configures the engine, which a disk would start.
        _ = try Engine.capabilities
        guard let disk = fault_disk_create() else {
            throw StoreError(.io, "no disk could be registered")
        }
        self.disk = disk
    }

    deinit {
        fault_disk_destroy(disk)
    }

    /// For `Configuration.vfs`.
    var name: String { String(cString: fault_disk_name(disk)) }

    /// Lets `skip` operations of these kinds pass, then strikes `count` of them, or all.
    func arm(
        _ kinds: Kinds, skip: Int = 0, count: Int? = 1, _ action: Action = .fail, code: Int32 = 0
    ) {
        fault_disk_arm(
            disk, kinds.rawValue, Int64(skip), count.map(Int64.init) ?? -1, action.code, code)
    }

    func disarm() { fault_disk_disarm(disk) }

    var struckCount: Int { Int(fault_disk_struck_count(disk)) }

    func operationCount(_ kinds: Kinds) -> Int {
        Int(fault_disk_operation_count(disk, kinds.rawValue))
    }

    /// Lets each sync of the main file wait until `release()`: those of a checkpoint, and without a
    /// write-ahead log those of a commit.
    func holdMainSyncs() { fault_disk_hold_main_syncs(disk) }

    func release() { fault_disk_release(disk) }

    /// Returns when a sync is held.
    func isHolding() async throws {
        while fault_disk_held_count(disk) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    }

    // MARK: Power

    /// From now on records what is written separately from what is synced. No file may be open yet.
    func record() { fault_disk_record(disk) }

    /// A disk that records, and loses power after `skip` changes of its files, or not by itself.
    static func recording(
        powerOffAfter skip: Int?, ignoringSyncs: Bool
    ) throws(StoreError) -> FaultDisk {
        let disk = try FaultDisk()
        disk.record()
        if ignoringSyncs { disk.ignoreSyncs() }
        if let skip { disk.arm(.changing, skip: skip, .powerOff) }
        return disk
    }

    /// Syncs report success and save nothing.
    func ignoreSyncs() { fault_disk_ignore_syncs(disk) }

    var isOff: Bool { fault_disk_is_off(disk) }

    func cutPower() { fault_disk_cut(disk) }

    /// Leaves in the closed files what a power loss leaves: what was synced, and an arbitrary part
    /// of the rest; with seed 0 none of the rest.
    func restore(seed: UInt64) throws(StoreError) {
        guard fault_disk_restore(disk, seed) else {
            throw StoreError(.io, "the files could not be restored, or one is open")
        }
    }
}
