// The floor: hand-written C on SQLite's API, as fast as its documentation allows.
//
// Frozen. A ratio of any system is a ratio to this, so a change here changes every figure. It is
// built with -O2; statements are prepared once; values are bound SQLITE_STATIC; the texts and the
// blob of a fetched row are copied into one malloc; NULL and type are checked; everything runs in
// one transaction; SQLite keeps no memory statistics.

#ifndef COFFER_BENCH_FLOOR_H
#define COFFER_BENCH_FLOOR_H

#ifndef SQLITE_HAS_CODEC
#define SQLITE_HAS_CODEC 1
#endif
#include <sqlite3.h>
#include <string.h>

#include "workload.h"

/// A fetched row: the record of the workload, with its bytes in a separate block, which
/// floor_release frees. Not for bench_records_free.
typedef bench_record floor_record;

extern sqlite3 *db;

// connection.c
_Noreturn void floor_fail(const char *what);
/// Opens without reading: the first statement finds out whether the key fits. Leaves `db` alone, so
/// that threads can open.
sqlite3 *floor_open_file(const char *path, const void *key, int key_bytes);
/// Applies the settings that a connection needs each time it opens.
void floor_configure(sqlite3 *connection, bench_arguments arguments);
/// The first read, which finds out whether the key fits.
void floor_read_schema(sqlite3 *connection);
/// Prints once what `db` is and how it is set up.
void floor_describe(void);
/// Opens, configures and describes; makes the tables if the file is new.
void floor_open(bench_arguments arguments, bool is_new);
void floor_close(void);
void floor_run(const char *sql);
sqlite3_stmt *floor_prepare(const char *sql);
void floor_end(sqlite3_stmt *statement);
void floor_begin(void);
void floor_commit(void);
/// `x'…'` for the raw key and salt, or the passphrase; returns the byte count.
int floor_key(char text[99], const uint8_t key[48]);

// records.c
void floor_insert(sqlite3_stmt *statement, const bench_record *records, int64_t count);
void floor_update(sqlite3_stmt *statement, const bench_record *records, int64_t count);
floor_record *floor_fetch(sqlite3_stmt *statement, int64_t *count);
void floor_find(sqlite3_stmt *statement, int64_t id, floor_record *record);
/// Takes the first row of a statement whose parameters are bound.
void floor_take(sqlite3_stmt *statement, floor_record *record);
bench_check floor_sum(const bench_record *records, int64_t count);
/// Fetches all and sums it up, outside the clock.
bench_check floor_sum_of_file(sqlite3_stmt *select);
/// Fetches all rows in one transaction and frees them, on the clock; sums them up in between, off
/// it.
bench_check floor_time_fetch(sqlite3_stmt *select);
/// Looks up this many of the rows 1 to `rows` in one transaction, likewise.
bench_check floor_time_finds(sqlite3_stmt *find, int64_t lookups, int64_t rows);
/// The sum that those lookups must find.
bench_check floor_sum_of_finds(int64_t lookups, int64_t rows);
/// Makes a new file with records 1 to `count`, and closes it.
bench_check floor_fill(bench_arguments arguments, int64_t count);
/// The rows of a check's answer that are not "ok", and one if it fails.
int64_t floor_problems(const char *sql);
/// The problems that all checks of the engine find: of pages, where it has one, and of structure.
int64_t floor_all_problems(void);
/// Frees the bytes of a fetched record.
void floor_release(floor_record *record);
/// Frees what floor_fetch has returned.
void floor_release_all(floor_record *records, int64_t count);
#define FLOOR_INSERT \
    "INSERT INTO item (id, name, url, kind, x, y, created, flag, note, data) " \
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
#define FLOOR_SELECT "SELECT id, name, url, kind, x, y, created, flag, note, data FROM item"
#define FLOOR_FIND FLOOR_SELECT " WHERE id = ?1"
// OR FAIL spares the statement journal, which SQLCipher 3.4.1 encrypts: 10.7 µs a row or 1.1.
// It changes nothing else for one row that is found by its key.
#define FLOOR_UPDATE \
    "UPDATE OR FAIL item SET name = ?2, url = ?3, kind = ?4, x = ?5, y = ?6, created = ?7, " \
    "flag = ?8, note = ?9, data = ?10 WHERE id = ?1"

// The workloads.
void floor_records(bench_arguments arguments);
void floor_durable(bench_arguments arguments);
void floor_latency(bench_arguments arguments);
void floor_queue(bench_arguments arguments);
void floor_entries(bench_arguments arguments);
void floor_blobs(bench_arguments arguments);
void floor_paced(bench_arguments arguments);

// attachments.c
void floor_attachments(bench_arguments arguments);
void floor_files(bench_arguments arguments);
void floor_compact(bench_arguments arguments);
void floor_growth(bench_arguments arguments);
void floor_flights(bench_arguments arguments);
void floor_references(bench_arguments arguments);

// MARK: Values

// A connection without mutexes makes no difference between protected and unprotected values, so one
// sqlite3_column_value serves for type, bytes and count: https://www.sqlite.org/c3ref/value.html

static inline bench_bytes text_of(sqlite3_value *value) {
    if (sqlite3_value_type(value) != SQLITE_TEXT) bench_fail("type", "no text");
    const void *bytes = sqlite3_value_text(value);
    return (bench_bytes){bytes, sqlite3_value_bytes(value)};
}

static inline int64_t integer_of(sqlite3_value *value) {
    if (sqlite3_value_type(value) != SQLITE_INTEGER) bench_fail("type", "no integer");
    return sqlite3_value_int64(value);
}

static inline double real_of(sqlite3_value *value) {
    if (sqlite3_value_type(value) != SQLITE_FLOAT) bench_fail("type", "no real");
    return sqlite3_value_double(value);
}

static inline bench_bytes blob_of(sqlite3_value *value) {
    if (sqlite3_value_type(value) != SQLITE_BLOB) bench_fail("type", "no blob");
    const void *bytes = sqlite3_value_blob(value);
    return (bench_bytes){bytes, sqlite3_value_bytes(value)};
}

/// Copies the bytes to `*end`, and moves `*end` behind them.
static inline bench_bytes copied(char **end, bench_bytes bytes) {
    bench_bytes copy = {memcpy(*end, bytes.bytes, (size_t)bytes.count), bytes.count};
    *end += bytes.count;
    return copy;
}

#endif
