// A disk that fails on demand and can lose its power, between SQLite and the system.
//
// Each disk is a separate VFS, registered under its own name, so concurrent tests do not meet. It
// passes everything on to the default VFS: the files are the system's, under their own paths. It
// never calls fsync, which only costs time: what a sync would have saved is kept in memory.

#ifndef COFFER_CFAULTVFS_H
#define COFFER_CFAULTVFS_H

#include <stdbool.h>
#include <stdint.h>

/// What an operation does; a set of them is a sum.
typedef enum fault_kind {
    fault_open = 1 << 0,
    fault_read = 1 << 1,
    fault_write = 1 << 2,
    fault_truncate = 1 << 3,
    fault_sync = 1 << 4,
    fault_delete = 1 << 5,
    /// Mapping the WAL index and taking its locks.
    fault_shm = 1 << 6,
    /// Taking a lock of the main file.
    fault_lock = 1 << 7,
    /// Asking whether a file is there.
    fault_access = 1 << 8,
    /// Asking for a file's size.
    fault_size = 1 << 9,
    fault_any = (1 << 10) - 1,
    /// The operations that change a file or make a change durable.
    fault_changing = fault_write | fault_truncate | fault_sync | fault_delete,
} fault_kind;

/// What happens to an operation that is struck.
typedef enum fault_action {
    /// Nothing is done, and the code is returned.
    fault_fail,
    /// The first half of a write is done, and the code is returned. Others fail.
    fault_shorten,
    /// Nothing is done, and success is returned. No real disk should: for tests of tests.
    fault_lie,
    /// The operation is the last one, and may be done, half done, or not: see fault_disk_restore.
    fault_power_off,
    /// The process is killed before the operation.
    fault_kill,
} fault_action;

typedef struct fault_disk fault_disk;

/// Registers a disk; NULL without memory.
fault_disk *fault_disk_create(void);

/// The disk's name as a VFS.
const char *fault_disk_name(const fault_disk *disk);

/// Unregisters the disk. While files are open on it its memory stays.
void fault_disk_destroy(fault_disk *disk);

/// Strikes operations of these kinds: lets `skip_count` of them pass, then acts on `count` of them;
/// a negative count means all that follow. Code 0 stands for the one that fits the operation.
void fault_disk_arm(fault_disk *disk, uint32_t kinds, int64_t skip_count, int64_t count,
                    fault_action action, int code);

/// Strikes nothing more, but does not forget what has been struck.
void fault_disk_disarm(fault_disk *disk);

/// The number of operations that were struck so far.
int64_t fault_disk_struck_count(fault_disk *disk);

/// The number of operations of these kinds so far, struck or not.
int64_t fault_disk_operation_count(fault_disk *disk, uint32_t kinds);

/// From now on records what was written separately from what was synced. No file may be open yet;
/// what the system has then counts as synced.
void fault_disk_record(fault_disk *disk);

/// Syncs return success and save nothing: for tests of tests.
void fault_disk_ignore_syncs(fault_disk *disk);

/// Lets each sync of a main file wait until the release: those of a checkpoint, and without a
/// write-ahead log those of a commit.
void fault_disk_hold_main_syncs(fault_disk *disk);

/// Releases the syncs that are held.
void fault_disk_release(fault_disk *disk);

/// The number of syncs that are held.
int64_t fault_disk_held_count(fault_disk *disk);

/// Whether the power is off: all operations fail, and no file changes.
bool fault_disk_is_off(fault_disk *disk);

/// Cuts the power now.
void fault_disk_cut(fault_disk *disk);

/// Leaves in the system's files what a power loss leaves, when all are closed: what was synced, and
/// an arbitrary part of the rest, chosen by the seed. Each sector is as it was at some moment, so
/// writes may be there, be missing or be torn. Changes of the folder, which file systems keep in
/// order, are there up to an arbitrary one. Seed 0 leaves only what was synced. Returns false if a
/// file could not be written, or is open.
bool fault_disk_restore(fault_disk *disk, uint64_t seed);

#endif
