#include <stdlib.h>
#include <string.h>

#include "floor.h"

// open, rekey and verify: whole files.

static int64_t rows_in(sqlite3 *opened) {
    db = opened;
    sqlite3_stmt *statement = floor_prepare("SELECT count(*) FROM item");
    if (sqlite3_step(statement) != SQLITE_ROW) floor_fail("count");
    int64_t count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return count;
}

/// One connection, or a writer and four readers; ready when the engine has read with each.
/// C as the manual shows it derives the key in each connection.
static void open_each(bench_arguments arguments, const void *key, int key_bytes, int connections) {
    sqlite3 *opened[5];
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = {0}, read = {0};
        bench_start();
        for (int j = 0; j < connections; j++) {
            opened[j] = floor_open_file(arguments.path, key, key_bytes);
            floor_run("PRAGMA temp_store = MEMORY");
            floor_run("PRAGMA cache_size = -64000");
            floor_run("PRAGMA synchronous = NORMAL");
            floor_run("SELECT count(*) FROM sqlite_master");
        }
        bench_stop();
        for (int j = 0; j < connections; j++) {
            bench_check_integer(&read, rows_in(opened[j]));
            bench_check_integer(&written, arguments.rows);
        }
        bench_check_end_row(&written), bench_check_end_row(&read);
        bench_sample((double)arguments.rows, written, read);
        for (int j = 0; j < connections; j++) sqlite3_close(opened[j]);
    }
}

static void change_key(bench_arguments arguments) {
#ifdef FLOOR_IS_PLAIN
    bench_skip("plain SQLite has no key");
#else
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = floor_fill(arguments, arguments.rows), read = {0};
        double megabytes = (double)bench_file_bytes(arguments.path) / 1e6;
        char key[99];
        floor_open(arguments, false);
        int count = floor_key(key, bench_other_key);
        bench_start();
        if (sqlite3_rekey_v2(db, "main", key, count) != SQLITE_OK) floor_fail("rekey");
        // The new pages are in the log until then.
        floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
        bench_stop();
        floor_close();
        floor_open_file(arguments.path, key, count);
        sqlite3_stmt *select = floor_prepare(FLOOR_SELECT);
        int64_t found;
        floor_record *records = floor_fetch(select, &found);
        read = floor_sum(records, found);
        bench_records_free(records, found);
        sqlite3_finalize(select);
        sqlite3_close(db);
        bench_sample(megabytes, written, read);
    }
#endif
}

/// Runs a check and counts its rows that are not "ok".
static int64_t problems(const char *sql) {
    int64_t count = 0;
    sqlite3_stmt *statement = floor_prepare(sql);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        count += strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0;
    }
    sqlite3_finalize(statement);
    return count;
}

static void verify(bench_arguments arguments) {
    floor_fill(arguments, arguments.rows);
    double megabytes = (double)bench_file_bytes(arguments.path) / 1e6;
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check none = {0}, found = {0};
        floor_open(arguments, false);
        bench_start();
        // SQLCipher 3 and plain SQLite have no check of all pages but the one of the structure.
        int64_t count = problems("PRAGMA integrity_check");
        if (SQLITE_VERSION_NUMBER >= 3030000) count += problems("PRAGMA cipher_integrity_check");
        bench_stop();
        found.sum = (uint64_t)count;
        bench_sample(megabytes, none, found);
        floor_close();
    }
}

void floor_files(bench_arguments arguments) {
    if (bench_is(arguments, "rekey")) return change_key(arguments);
    if (bench_is(arguments, "verify")) return verify(arguments);
    char raw[99];
    const void *key = raw;
    int key_bytes = floor_key(raw, bench_key);
    bool is_pool = strstr(arguments.workload, "pool") != NULL;
    if (strstr(arguments.workload, "passphrase") != NULL) {
#ifdef FLOOR_IS_PLAIN
        bench_skip("plain SQLite has no key");
#endif
        key = bench_passphrase, key_bytes = (int)strlen(bench_passphrase);
    }
    // A passphrase makes a file of its own.
    bench_remove(arguments.path);
    sqlite3 *made = floor_open_file(arguments.path, key, key_bytes);
    floor_run("PRAGMA journal_mode = WAL");
    floor_run(BENCH_CREATE_ITEM);
    bench_record *records = bench_records_make(1, arguments.rows, 1);
    sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT);
    floor_run("BEGIN");
    floor_insert(insert, records, arguments.rows);
    floor_run("COMMIT");
    sqlite3_finalize(insert);
    bench_records_free(records, arguments.rows);
    sqlite3_close(made);
    open_each(arguments, key, key_bytes, is_pool ? 5 : 1);
}
