#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef FLOOR_IS_PLAIN
#include <openssl/evp.h>
#endif

#include "floor.h"

// open, rekey, rotate, fleet and verify: whole files.

// MARK: Opening

enum { pool = 5 };

typedef struct {
    bench_arguments arguments;
    const void *key;
    int key_bytes;
    sqlite3 *opened;
} connection;

/// A connection is ready when the engine has read with it.
static void *open_one(void *context) {
    connection *self = context;
    self->opened = floor_open_file(self->arguments.path, self->key, self->key_bytes);
    floor_configure(self->opened, self->arguments);
    floor_read_schema(self->opened);
    return NULL;
}

/// Opens the writer, and then the readers in separate threads, which is faster than one after
/// another.
static void open_all(connection *connections, int count) {
    pthread_t threads[pool];
    open_one(connections);
    for (int i = 1; i < count; i++) {
        if (pthread_create(threads + i, NULL, open_one, connections + i) != 0) bench_fail("thread", "none left");
    }
    for (int i = 1; i < count; i++) pthread_join(threads[i], NULL);
}

#ifndef FLOOR_IS_PLAIN
/// Derives the raw key as SQLCipher would in each connection: PBKDF2 with the file's first 16 bytes
/// as salt, https://www.zetetic.net/sqlcipher/design/
static int derive(const char *path, char text[99]) {
    uint8_t key[48];
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(key + 32, 1, 16, file) != 16) bench_fail("salt", path);
    fclose(file);
    const EVP_MD *hash = SQLITE_VERSION_NUMBER < 3030000 ? EVP_sha1() : EVP_sha512();
    int count = (int)strlen(bench_passphrase);
    if (PKCS5_PBKDF2_HMAC(bench_passphrase, count, key + 32, 16, 256000, hash, 32, key) != 1) bench_fail("derive", path);
    return floor_key(text, key);
}
#endif

static int64_t rows_in(sqlite3 *opened) {
    db = opened;
    sqlite3_stmt *statement = floor_prepare("SELECT count(*) FROM item");
    if (sqlite3_step(statement) != SQLITE_ROW) floor_fail("count");
    int64_t count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return count;
}

/// Opens one connection, or a writer and four readers. A passphrase is derived once for all of
/// these, and by SQLCipher itself for one.
static void open_each(bench_arguments arguments, const void *key, int key_bytes, bool is_derived, int count) {
    connection connections[pool];
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = {0}, read = {0};
        bench_start();
#ifndef FLOOR_IS_PLAIN
        char derived[99];
        if (is_derived) key_bytes = derive(arguments.path, derived), key = derived;
#endif
        for (int j = 0; j < count; j++) connections[j] = (connection){arguments, key, key_bytes, NULL};
        open_all(connections, count);
        bench_stop();
        for (int j = 0; j < count; j++) {
            bench_check_integer(&read, rows_in(connections[j].opened));
            bench_check_integer(&written, arguments.rows);
        }
        floor_describe();
        bench_check_end_row(&written), bench_check_end_row(&read);
        bench_sample((double)arguments.rows, written, read);
        for (int j = 0; j < count; j++) sqlite3_close(connections[j].opened);
    }
}

static void open_workloads(bench_arguments arguments) {
    char raw[99];
    const void *key = raw;
    int key_bytes = floor_key(raw, bench_key);
    bool is_pool = strstr(arguments.workload, "pool") != NULL;
    bool is_passphrase = strstr(arguments.workload, "passphrase") != NULL;
    if (is_passphrase) {
#ifdef FLOOR_IS_PLAIN
        bench_skip("plain SQLite has no key");
#endif
        key = bench_passphrase, key_bytes = (int)strlen(bench_passphrase);
    }
    // A passphrase makes a separate file.
    bench_remove(arguments.path);
    db = floor_open_file(arguments.path, key, key_bytes);
    floor_run("PRAGMA journal_mode = WAL");
    floor_run(BENCH_CREATE_ITEM);
    bench_record *records = bench_records_make(1, arguments.rows, 1);
    sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT);
    floor_run("BEGIN");
    floor_insert(insert, records, arguments.rows);
    floor_run("COMMIT");
    sqlite3_finalize(insert);
    bench_records_free(records, arguments.rows);
    sqlite3_close(db);
    open_each(arguments, key, key_bytes, is_pool && is_passphrase, is_pool ? pool : 1);
}

// MARK: Rekey and verify

#ifndef FLOOR_IS_PLAIN
/// Closes the file, opens it with another key, and sums up its rows.
static bench_check sum_with(const char *path, const char *key, int key_bytes) {
    floor_close();
    db = floor_open_file(path, key, key_bytes);
    sqlite3_stmt *select = floor_prepare(FLOOR_SELECT);
    bench_check read = floor_sum_of_file(select);
    sqlite3_finalize(select);
    sqlite3_close(db);
    return read;
}

/// Checks the MAC of every page. SQLCipher 3 has nothing for that, and checks the structure.
static int64_t damaged_pages(void) {
    bool is_fourth = SQLITE_VERSION_NUMBER >= 3030000;
    return floor_problems(is_fourth ? "PRAGMA cipher_integrity_check" : "PRAGMA integrity_check");
}
#endif

static void change_key(bench_arguments arguments) {
#ifdef FLOOR_IS_PLAIN
    bench_skip("plain SQLite has no key");
#else
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = floor_fill(arguments, arguments.rows);
        double megabytes = (double)bench_file_bytes(arguments.path) / 1e6;
        char key[99];
        floor_open(arguments, false);
        int count = floor_key(key, bench_other_key);
        bench_start();
        if (sqlite3_rekey_v2(db, "main", key, count) != SQLITE_OK) floor_fail("rekey");
        // The new pages are in the WAL until then.
        floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
        bench_stop();
        bench_check read = sum_with(arguments.path, key, count);
        bench_sample(megabytes, written, read);
    }
#endif
}

/// rotate: three figures of one change of the key. The bare `PRAGMA rekey`; the same until the new
/// pages are in the main file; and both between two checks of all pages.
static void rotate(bench_arguments arguments) {
#ifdef FLOOR_IS_PLAIN
    bench_skip("plain SQLite has no key");
#else
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = floor_fill(arguments, arguments.rows);
        double megabytes = (double)bench_file_bytes(arguments.path) / 1e6;
        char key[99];
        floor_open(arguments, false);
        int count = floor_key(key, bench_other_key);
        double begun = bench_now();
        int64_t problems = damaged_pages();
        double checking = bench_now() - begun;
        // A connection with an empty page cache, as that of the other figures of a change of the key.
        floor_close();
        floor_open(arguments, false);
        begun = bench_now();
        if (sqlite3_rekey_v2(db, "main", key, count) != SQLITE_OK) floor_fail("rekey");
        double changed = bench_now();
        floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
        double moved = bench_now();
        problems += damaged_pages();
        double ended = bench_now();
        if (problems != 0) bench_fail("rotate", "found damage");
        bench_check read = sum_with(arguments.path, key, count);
        bench_figure("rotate-pause", changed - begun, megabytes, written, read);
        bench_figure("rotate-move", moved - begun, megabytes, written, read);
        bench_figure("rotate", checking + ended - begun, megabytes, written, read);
    }
#endif
}

/// fleet: opens one file after the other, changes its key, and closes it. Begins with the path that
/// ends in "-0.db".
static void rekey_each(bench_arguments arguments) {
#ifdef FLOOR_IS_PLAIN
    bench_skip("plain SQLite has no key");
#else
    char path[4096], key[99];
    double megabytes = 0;
    int start = (int)strlen(arguments.path) - (int)strlen("0.db");
    const char *first = arguments.path;
    floor_key(key, bench_other_key);
    arguments.path = path;
    bench_check none = {0};
    bench_start();
    for (int64_t i = 0; i < arguments.rows; i++) {
        snprintf(path, sizeof path, "%.*s%lld.db", start, first, (long long)i);
        megabytes += (double)bench_file_bytes(path) / 1e6;
        floor_open(arguments, false);
        if (sqlite3_rekey_v2(db, "main", key, 99) != SQLITE_OK) floor_fail("rekey");
        // Closing moves the new pages from the WAL.
        floor_close();
    }
    bench_stop();
    // The last one has the other key, and needs no WAL.
    db = floor_open_file(path, key, 99);
    floor_read_schema(db);
    floor_close();
    bench_sample(megabytes, none, none);
#endif
}

/// Runs a check and counts its rows that are not "ok", and the error that ended it.
int64_t floor_problems(const char *sql) {
    int64_t count = 0;
    int code;
    sqlite3_stmt *statement = floor_prepare(sql);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        count += strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0;
    }
    sqlite3_finalize(statement);
    return count + (code != SQLITE_DONE);
}

int64_t floor_all_problems(void) {
    int64_t count = floor_problems("PRAGMA integrity_check");
#ifndef FLOOR_IS_PLAIN
    // SQLCipher 3 cannot check all pages, only those that the structure reaches.
    if (SQLITE_VERSION_NUMBER >= 3030000) count += floor_problems("PRAGMA cipher_integrity_check");
#endif
    return count;
}

static void verify(bench_arguments arguments) {
    floor_fill(arguments, arguments.rows);
    double megabytes = (double)bench_file_bytes(arguments.path) / 1e6;
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check none = {0}, found = {0};
        floor_open(arguments, false);
        bench_start();
        int64_t count = floor_all_problems();
        bench_stop();
        found.sum = (uint64_t)count;
        bench_sample(megabytes, none, found);
        floor_close();
    }
    // A check that never finds anything proves nothing.
    char copy[4096];
    snprintf(copy, sizeof copy, "%s.damaged", arguments.path);
    bench_copy_damaged(arguments.path, copy);
    arguments.path = copy;
    floor_open(arguments, false);
    int64_t found = floor_all_problems();
#ifndef FLOOR_IS_PLAIN
    // SQLCipher finds the bit by the page's MAC, whichever check reads the page; plain SQLite has
    // no MAC.
    if (found == 0) bench_fail("verify", "did not find a changed bit");
#else
    (void)found;
#endif
    floor_close();
    bench_remove(copy);
}

void floor_files(bench_arguments arguments) {
    if (bench_is(arguments, "rekey")) return change_key(arguments);
    if (bench_is(arguments, "rotate")) return rotate(arguments);
    if (bench_is(arguments, "fleet")) return rekey_each(arguments);
    if (bench_is(arguments, "verify")) return verify(arguments);
    open_workloads(arguments);
}
