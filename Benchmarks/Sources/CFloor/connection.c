#include <stdio.h>
#include <string.h>

#include "floor.h"

sqlite3 *db;
static sqlite3_stmt *begin, *commit;

void floor_fail(const char *what) { bench_fail(what, sqlite3_errmsg(db)); }

static void run_on(sqlite3 *connection, const char *sql) {
    if (sqlite3_exec(connection, sql, NULL, NULL, NULL) != SQLITE_OK) bench_fail(sql, sqlite3_errmsg(connection));
}

void floor_run(const char *sql) { run_on(db, sql); }

sqlite3_stmt *floor_prepare(const char *sql) {
    sqlite3_stmt *statement = NULL;
#if SQLITE_VERSION_NUMBER >= 3020000
    int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
#else
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
#endif
    if (code != SQLITE_OK) floor_fail(sql);
    return statement;
}

void floor_end(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) floor_fail("step");
    sqlite3_reset(statement);
}

void floor_begin(void) { floor_end(begin); }
void floor_commit(void) { floor_end(commit); }

int floor_key(char text[99], const uint8_t key[48]) {
    char *end = text + sprintf(text, "x'");
    for (int i = 0; i < 48; i++) end += sprintf(end, "%02x", key[i]);
    end += sprintf(end, "'");
    return (int)(end - text);
}

sqlite3 *floor_open_file(const char *path, const void *key, int key_bytes) {
    sqlite3 *opened = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int code = sqlite3_open_v2(path, &opened, flags, NULL);
    if (code != SQLITE_OK) bench_fail("open", sqlite3_errmsg(opened));
#ifndef FLOOR_IS_PLAIN
    if (sqlite3_key_v2(opened, "main", key, key_bytes) != SQLITE_OK) bench_fail("key", sqlite3_errmsg(opened));
    // SQLCipher 3 makes pages of 1024 bytes; all systems use 4096.
    if (SQLITE_VERSION_NUMBER < 3030000) {
        run_on(opened, "PRAGMA cipher_page_size = 4096");
        run_on(opened, "PRAGMA kdf_iter = 256000");
    }
#else
    (void)key, (void)key_bytes;
#endif
    return opened;
}

void floor_configure(sqlite3 *connection, bench_arguments arguments) {
    char sql[64];
    run_on(connection, "PRAGMA temp_store = MEMORY");
    if (arguments.cache_kib > 0) {
        snprintf(sql, sizeof sql, "PRAGMA cache_size = -%lld", (long long)arguments.cache_kib);
        run_on(connection, sql);
    }
    run_on(connection, arguments.full_sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
}

void floor_read_schema(sqlite3 *connection) { run_on(connection, "SELECT count(*) FROM sqlite_master"); }

static void describe(const char *pragma) {
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA %s", pragma);
    sqlite3_stmt *statement = floor_prepare(sql);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        bench_describe(pragma, (const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
}

void floor_describe(void) {
    static bool is_described = false;
    if (is_described) return;
    is_described = true;
    bench_describe("sqlite_version", sqlite3_libversion());
    describe("cipher_version");
    describe("page_size");
    describe("cache_size");
    describe("journal_mode");
    describe("synchronous");
    describe("temp_store");
}

void floor_open(bench_arguments arguments, bool is_new) {
    char key[99];
    int key_bytes = floor_key(key, bench_key);
    db = floor_open_file(arguments.path, key, key_bytes);
    floor_configure(db, arguments);
    floor_run("PRAGMA foreign_keys = ON");
    floor_run("PRAGMA journal_mode = WAL");
    if (is_new) {
        floor_run(BENCH_CREATE_ITEM);
        floor_run(BENCH_CREATE_ENTRY);
    }
    floor_describe();
    begin = floor_prepare("BEGIN IMMEDIATE");
    commit = floor_prepare("COMMIT");
}

void floor_close(void) {
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    // A file that is opened next need not have them.
    begin = commit = NULL;
    if (sqlite3_close(db) != SQLITE_OK) floor_fail("close");
}
