// Records each change of a file in a folder, between this program and the system, or lets one fail.
//
// The program that links this calls `open`, `pwrite`, `fsync` and the like of this file, and so do
// the shared libraries that it loads. Before `recorder_begin` they only pass on what they get.
//
// The record is a file of entries, in the order of the changes. Each is 24 bytes, in the order of
// the machine, and then what they count:
//
//     0  kind of the change, `recorder_kind`: 8 bits
//     2  bytes of the path: 16 bits
//     4  bytes of the other path: 16 bits
//     8  bytes that were written: 64 bits
//    16  where they were written; of a truncation the new size: 64 bits

#ifndef COFFER_CFILERECORDER_H
#define COFFER_CFILERECORDER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum recorder_kind {
    /// A file that did not exist was opened. A file that was emptied by that is truncated too.
    recorder_create = 1,
    recorder_write = 2,
    recorder_truncate = 3,
    recorder_sync = 4,
    /// The names in a folder were synced.
    recorder_sync_folder = 5,
    recorder_rename = 6,
    recorder_link = 7,
    recorder_unlink = 8,
    /// The program has called `recorder_mark`. The path is its text.
    recorder_mark_text = 9,
    /// A change failed, as `recorder_begin` asked. The offset is its kind.
    recorder_failure = 10,
} recorder_kind;

/// Whether this system is one on which changes can be recorded: Linux, without a sanitizer.
bool recorder_is_available(void);

/// Begins to record the changes in a folder, in which nothing has happened yet.
///
/// - Parameter fail_at: The number of the change, from 0, that fails; -1 for none.
/// - Parameter error: Its error number.
/// - Parameter is_lasting: Whether later writes and new files fail too, as on a full disk.
/// - Returns: Whether the record could be made.
bool recorder_begin(
    const char *folder, const char *record, int64_t fail_at, int error, bool is_lasting);

/// Writes a text into the record.
void recorder_mark(const char *text);

#endif
