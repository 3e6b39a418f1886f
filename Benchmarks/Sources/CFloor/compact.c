#include <stdio.h>
#include <string.h>

#include "floor.h"

// compact: the file of W1 without every second row.
//
// "c-sqlcipher" runs VACUUM, which checks nothing. "c-checked" makes Coffer's passes: it copies the
// rows into another file within the engine, compares all rows, checks the structure, and replaces
// the pages of the store in one transaction.

/// Makes the file, opens it, and deletes every second row.
static double begin_with_half(bench_arguments arguments) {
    floor_fill(arguments, arguments.rows);
    double megabytes = (double)bench_file_bytes(arguments.path) / 1e6;
    floor_open(arguments, false);
    floor_run("DELETE FROM item WHERE id % 2 = 0");
    floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
    return megabytes;
}

static void end(double megabytes) {
    bench_check none = {0};
    if (floor_problems("PRAGMA integrity_check") != 0) bench_fail("compact", "destroyed the store");
    floor_close();
    bench_sample(megabytes, none, none);
}

/// VACUUM with its temporary database in a file, which SQLCipher encrypts, or in memory.
static void vacuum(bench_arguments arguments, bool is_in_memory) {
    double megabytes = begin_with_half(arguments);
    // In a file, VACUUM of SQLCipher 3.4.1 destroys the store: see Documentation/engines.md.
    bool is_file = !is_in_memory && SQLITE_VERSION_NUMBER >= 3030000;
    floor_run(is_file ? "PRAGMA temp_store = FILE" : "PRAGMA temp_store = MEMORY");
    bench_start();
    floor_run("VACUUM");
    // The new pages are in the WAL until then.
    floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
    bench_stop();
    end(megabytes);
}

// MARK: The passes of a checked copy

/// The columns of FLOOR_SELECT, by their types in the file.
static bench_check sum(const char *sql) {
    bench_check check = {0};
    sqlite3_stmt *rows = floor_prepare(sql);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            switch (sqlite3_column_type(rows, i)) {
            case SQLITE_INTEGER: bench_check_integer(&check, sqlite3_column_int64(rows, i)); break;
            case SQLITE_FLOAT: bench_check_real(&check, sqlite3_column_double(rows, i)); break;
            case SQLITE_NULL: bench_check_null(&check); break;
            default: {
                const void *bytes = sqlite3_column_blob(rows, i);
                bench_check_bytes(&check, bytes, sqlite3_column_bytes(rows, i));
            }
            }
        }
        bench_check_end_row(&check);
    }
    sqlite3_finalize(rows);
    return check;
}

static void attach(const char *path) {
    char key[99], sql[4352];
    floor_key(key, bench_key);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS copy KEY \"%s\"", path, key);
    // SQLCipher 3 reads the file at once, with the process's settings.
    if (SQLITE_VERSION_NUMBER < 3030000) floor_run("PRAGMA cipher_default_page_size = 4096");
    floor_run(sql);
    floor_run("PRAGMA copy.journal_mode = OFF");
    floor_run("PRAGMA copy.synchronous = OFF");
    floor_run("PRAGMA copy.cache_size = -4096");
}

static void detach(void) { floor_run("DETACH copy"); }

static void create(const char *table) {
    char sql[1024];
    snprintf(sql, sizeof sql, "CREATE TABLE copy.%s", table + strlen("CREATE TABLE "));
    floor_run(sql);
}

static bench_check copy_rows(const char *path) {
    attach(path);
    floor_run("BEGIN");
    create(BENCH_CREATE_ITEM);
    create(BENCH_CREATE_ENTRY);
    floor_run("INSERT INTO copy.item SELECT * FROM main.item");
    floor_run("INSERT INTO copy.entry SELECT * FROM main.entry");
    bench_check check = sum("SELECT * FROM main.item");
    floor_run("COMMIT");
    detach();
    return check;
}

static void replace_pages(const char *path) {
    char key[99];
    sqlite3 *copy = floor_open_file(path, key, floor_key(key, bench_key));
    floor_read_schema(copy);
    sqlite3_backup *backup = sqlite3_backup_init(db, "main", copy, "main");
    if (backup == NULL || sqlite3_backup_step(backup, -1) != SQLITE_DONE) floor_fail("backup");
    sqlite3_backup_finish(backup);
    sqlite3_close(copy);
    floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
}

static void compact(bench_arguments arguments) {
    char path[4096];
    snprintf(path, sizeof path, "%s.copy", arguments.path);
    bench_remove(path);
    double megabytes = begin_with_half(arguments);
    // As small as Coffer's caches are meanwhile.
    floor_run("PRAGMA cache_size = -4096");
    bench_start();
    bench_check written = copy_rows(path);
    attach(path);
    if (floor_problems("PRAGMA copy.integrity_check") != 0) bench_fail("compact", "the copy is damaged");
    bench_check read = sum("SELECT * FROM copy.item");
    detach();
    if (memcmp(&written, &read, sizeof read) != 0) bench_fail("compact", "the copy differs");
    replace_pages(path);
    bench_stop();
    bench_remove(path);
    end(megabytes);
}

void floor_compact(bench_arguments arguments) {
    bool is_checked = strcmp(arguments.system, "c-checked") == 0;
    for (int64_t i = 0; i < arguments.repeats; i++) {
        if (is_checked) {
            compact(arguments);
        } else {
            vacuum(arguments, bench_is(arguments, "compact-memory"));
        }
    }
}
