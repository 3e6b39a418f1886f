#include <stdlib.h>
#include <string.h>

#include "floor.h"

// W5: key and value, and blobs of a megabyte in the same table.

// INSERT OR REPLACE would do the same in one statement. On SQLCipher 3.4.1 it costs 15 times as
// many instructions, because it may delete a row and so opens a statement journal, which is
// encrypted.
static const char insert_sql[] = "INSERT OR IGNORE INTO entry (key, value) VALUES (?1, ?2)";
static const char update_sql[] = "UPDATE OR FAIL entry SET value = ?2 WHERE key = ?1";
static const char get_sql[] = "SELECT value FROM entry WHERE key = ?1";
enum { key_bytes = 16, value_bytes = 100, blob_bytes = 1000000 };

typedef struct {
    void *bytes;
    int count;
} value;

static sqlite3_stmt *inserting, *updating, *getting;

static void open_store(bench_arguments arguments, bool is_new) {
    floor_open(arguments, is_new);
    inserting = floor_prepare(insert_sql);
    updating = floor_prepare(update_sql);
    getting = floor_prepare(get_sql);
}

static void close_store(void) {
    sqlite3_finalize(inserting), sqlite3_finalize(updating), sqlite3_finalize(getting);
    floor_close();
}

static inline void run(sqlite3_stmt *statement, const void *key, const void *bytes, int count) {
    int code = sqlite3_bind_blob(statement, 1, key, key_bytes, SQLITE_STATIC);
    code |= sqlite3_bind_blob(statement, 2, bytes, count, SQLITE_STATIC);
    if (code != SQLITE_OK) floor_fail("bind");
    if (sqlite3_step(statement) != SQLITE_DONE) floor_fail("put");
    sqlite3_reset(statement);
}

static inline void put(const void *key, const void *bytes, int count) {
    run(inserting, key, bytes, count);
    if (sqlite3_changes(db) == 1) return;
    run(updating, key, bytes, count);
    if (sqlite3_changes(db) != 1) bench_fail("put", "no such key");
}

static inline value get(const void *key) {
    sqlite3_stmt *statement = getting;
    if (sqlite3_bind_blob(statement, 1, key, key_bytes, SQLITE_STATIC) != SQLITE_OK) floor_fail("bind");
    if (sqlite3_step(statement) != SQLITE_ROW) floor_fail("get");
    sqlite3_value *found = sqlite3_column_value(statement, 0);
    if (sqlite3_value_type(found) != SQLITE_BLOB) bench_fail("type", "no blob");
    const void *bytes = sqlite3_value_blob(found);
    value value = {NULL, sqlite3_value_bytes(found)};
    value.bytes = malloc(value.count > 0 ? (size_t)value.count : 1);
    if (value.bytes == NULL) bench_fail("memory", "none left");
    memcpy(value.bytes, bytes, (size_t)value.count);
    sqlite3_reset(statement);
    return value;
}

static void add(bench_check *check, const void *key, value value) {
    bench_check_bytes(check, key, key_bytes);
    bench_check_bytes(check, value.bytes, value.count);
    bench_check_end_row(check);
}

static bench_check sum_of_file(const bench_entry *entries, int64_t count) {
    bench_check check = {0};
    for (int64_t i = 0; i < count; i++) {
        value found = get(entries[i].key);
        add(&check, entries[i].key, found);
        free(found.bytes);
    }
    return check;
}

static void put_all(bench_arguments arguments, const bench_entry *entries, bench_check written) {
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        open_store(arguments, true);
        floor_begin();
        put(entries[0].key, entries[0].value, value_bytes);
        floor_run("DELETE FROM entry");
        floor_commit();
        bench_start();
        floor_begin();
        for (int64_t j = 0; j < arguments.rows; j++) put(entries[j].key, entries[j].value, value_bytes);
        floor_commit();
        bench_stop();
        bench_sample((double)arguments.rows, written, sum_of_file(entries, arguments.rows));
        close_store();
    }
}

/// Leaves a store open that has read nothing of these entries.
static void fill(bench_arguments arguments, const bench_entry *entries) {
    bench_remove(arguments.path);
    open_store(arguments, true);
    floor_begin();
    for (int64_t i = 0; i < arguments.rows; i++) put(entries[i].key, entries[i].value, value_bytes);
    floor_commit();
    close_store();
    open_store(arguments, false);
}

/// Gets each entry: all in one transaction, each in its own, or a thousand in each.
static void get_each(bench_arguments arguments, const bench_entry *entries, bench_check written) {
    int64_t count = arguments.rows;
    int64_t batch = bench_is(arguments, "W5-get-each") ? 1 : bench_is(arguments, "W5-get-many") ? 1000 : count;
    fill(arguments, entries);
    sqlite3_stmt *begin = floor_prepare("BEGIN"), *commit = floor_prepare("COMMIT");
    value *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_start();
        for (int64_t j = 0; j < count; j++) {
            if (j % batch == 0) floor_end(begin);
            values[j] = get(entries[bench_shuffled(j, count)].key);
            if ((j + 1) % batch == 0 || j + 1 == count) floor_end(commit);
        }
        bench_stop();
        bench_check read = {0};
        for (int64_t j = 0; j < count; j++) add(&read, entries[bench_shuffled(j, count)].key, values[j]);
        bench_start();
        for (int64_t j = 0; j < count; j++) free(values[j].bytes);
        bench_stop();
        bench_sample((double)count, written, read);
    }
    free(values);
    sqlite3_finalize(begin), sqlite3_finalize(commit);
    close_store();
}

/// Gets an integer for each key.
static void get_integers(bench_arguments arguments, const bench_entry *entries) {
    int64_t count = arguments.rows;
    bench_check written = {0};
    bench_remove(arguments.path);
    open_store(arguments, true);
    floor_begin();
    for (int64_t i = 0; i < count; i++) {
        if (sqlite3_bind_blob(inserting, 1, entries[i].key, key_bytes, SQLITE_STATIC) != SQLITE_OK) floor_fail("bind");
        if (sqlite3_bind_int64(inserting, 2, bench_integer(i)) != SQLITE_OK) floor_fail("bind");
        if (sqlite3_step(inserting) != SQLITE_DONE) floor_fail("put");
        sqlite3_reset(inserting);
        bench_check_integer(&written, bench_integer(i));
        bench_check_end_row(&written);
    }
    floor_commit();
    close_store();
    open_store(arguments, false);
    int64_t *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_start();
        floor_begin();
        for (int64_t j = 0; j < count; j++) {
            const void *key = entries[bench_shuffled(j, count)].key;
            if (sqlite3_bind_blob(getting, 1, key, key_bytes, SQLITE_STATIC) != SQLITE_OK) floor_fail("bind");
            if (sqlite3_step(getting) != SQLITE_ROW) floor_fail("get");
            values[j] = integer_of(sqlite3_column_value(getting, 0));
            sqlite3_reset(getting);
        }
        floor_commit();
        bench_stop();
        bench_check read = {0};
        for (int64_t j = 0; j < count; j++) {
            bench_check_integer(&read, values[j]);
            bench_check_end_row(&read);
        }
        bench_sample((double)count, written, read);
    }
    free(values);
    close_store();
}

/// W6-set64: one entry in each transaction, or as "c-grouped" one commit for as many as there are
/// writers; see durable.c.
static void set_durably(bench_arguments arguments, const bench_entry *entries, bench_check written) {
    int64_t count = arguments.rows;
    bool is_grouped = strcmp(arguments.system, "c-grouped") == 0;
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        open_store(arguments, true);
        sqlite3_stmt *savepoint = floor_prepare("SAVEPOINT member"), *release = floor_prepare("RELEASE member");
        bench_start();
        for (int64_t j = 0; j < count; j++) {
            bool is_first = !is_grouped || j % bench_writers == 0;
            is_first ? floor_begin() : floor_end(savepoint);
            put(entries[j].key, entries[j].value, value_bytes);
            if (!is_first) floor_end(release);
            if (!is_grouped || j % bench_writers == bench_writers - 1 || j == count - 1) floor_commit();
        }
        bench_stop();
        bench_sample((double)count, written, sum_of_file(entries, count));
        sqlite3_finalize(savepoint), sqlite3_finalize(release);
        close_store();
    }
}

/// sweep-quiet: a writer that sets an entry a thousand times a second, and nobody else.
void floor_paced(bench_arguments arguments) {
    bench_entry *entries = bench_entries_make(bench_paced_keys, 1);
    double *latencies = malloc(bench_paced_writes * sizeof *latencies);
    bench_check written = {0};
    for (int64_t i = 0; i < bench_paced_keys; i++) bench_check_entry(&written, entries + i);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        open_store(arguments, true);
        double start = bench_now();
        for (int64_t j = 0; j < bench_paced_writes; j++) {
            const bench_entry *entry = entries + j % bench_paced_keys;
            bench_wait_until(start + (double)(j * bench_pace_us));
            double begun = bench_now();
            floor_begin();
            put(entry->key, entry->value, value_bytes);
            floor_commit();
            latencies[j] = bench_now() - begun;
        }
        bench_latencies("sweep-quiet", latencies, bench_paced_writes, written, sum_of_file(entries, bench_paced_keys));
        close_store();
    }
    free(latencies), free(entries);
}

/// Reads all entries in the order of their keys, or the keys alone. Each row is copied into one
/// block.
static void scan(bench_arguments arguments, const bench_entry *entries, bench_check written) {
    int64_t count = arguments.rows;
    bool is_keys = bench_is(arguments, "W5-keys");
    fill(arguments, entries);
    sqlite3_stmt *select =
        floor_prepare(is_keys ? "SELECT key FROM entry ORDER BY key" : "SELECT key, value FROM entry ORDER BY key");
    struct { uint8_t *bytes; int count; } *rows = malloc((size_t)count * sizeof *rows);
    if (is_keys) {
        written = (bench_check){0};
        for (int64_t i = 0; i < count; i++) add(&written, entries[i].key, (value){(void *)entries[i].key, 0});
    }
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_start();
        floor_begin();
        int64_t found = 0;
        int code;
        while ((code = sqlite3_step(select)) == SQLITE_ROW) {
            sqlite3_value *key = sqlite3_column_value(select, 0);
            if (sqlite3_value_type(key) != SQLITE_BLOB) bench_fail("type", "no blob");
            const void *key_start = sqlite3_value_blob(key), *value_start = NULL;
            int length = 0;
            if (sqlite3_value_bytes(key) != key_bytes || found == count) bench_fail("rows", "others");
            if (!is_keys) {
                sqlite3_value *value = sqlite3_column_value(select, 1);
                if (sqlite3_value_type(value) != SQLITE_BLOB) bench_fail("type", "no blob");
                value_start = sqlite3_value_blob(value);
                length = sqlite3_value_bytes(value);
            }
            uint8_t *bytes = malloc((size_t)(key_bytes + length));
            if (bytes == NULL) bench_fail("memory", "none left");
            memcpy(bytes, key_start, key_bytes);
            if (length > 0) memcpy(bytes + key_bytes, value_start, (size_t)length);
            rows[found].bytes = bytes;
            rows[found++].count = length;
        }
        if (code != SQLITE_DONE) floor_fail("scan");
        sqlite3_reset(select);
        floor_commit();
        bench_stop();
        bench_check read = {0};
        for (int64_t j = 0; j < found; j++) add(&read, rows[j].bytes, (value){rows[j].bytes + key_bytes, rows[j].count});
        bench_start();
        for (int64_t j = 0; j < found; j++) free(rows[j].bytes);
        bench_stop();
        bench_sample((double)count, written, read);
    }
    free(rows);
    sqlite3_finalize(select);
    close_store();
}

void floor_entries(bench_arguments arguments) {
    bench_entry *entries = bench_entries_make(arguments.rows, 1);
    bench_check written = {0};
    for (int64_t i = 0; i < arguments.rows; i++) bench_check_entry(&written, entries + i);
    if (bench_is(arguments, "W5-put")) {
        put_all(arguments, entries, written);
    } else if (bench_is(arguments, "W5-get-integers")) {
        get_integers(arguments, entries);
    } else if (bench_is(arguments, "W6-set64")) {
        set_durably(arguments, entries, written);
    } else if (bench_is(arguments, "W5-keys") || bench_is(arguments, "W5-entries")) {
        scan(arguments, entries, written);
    } else {
        get_each(arguments, entries, written);
    }
    free(entries);
}

/// `rows` blobs of 1 MB in one transaction, then each of them out again; units are MB.
void floor_blobs(bench_arguments arguments) {
    int64_t count = arguments.rows;
    bool is_in = bench_is(arguments, "blob-in");
    bench_entry *entries = bench_entries_make(count, 1);
    uint8_t **blobs = malloc((size_t)count * sizeof *blobs);
    value *values = malloc((size_t)count * sizeof *values);
    bench_check written = {0};
    for (int64_t i = 0; i < count; i++) {
        blobs[i] = bench_blob_make(blob_bytes, i);
        add(&written, entries[i].key, (value){blobs[i], blob_bytes});
    }
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        open_store(arguments, true);
        if (is_in) bench_start();
        floor_begin();
        for (int64_t j = 0; j < count; j++) put(entries[j].key, blobs[j], blob_bytes);
        floor_commit();
        if (is_in) bench_stop();
        // The connection that wrote still has the pages; every system reads them from the file.
        close_store();
        open_store(arguments, false);
        bench_check read = {0};
        if (!is_in) bench_start();
        floor_begin();
        for (int64_t j = 0; j < count; j++) values[j] = get(entries[j].key);
        floor_commit();
        if (!is_in) bench_stop();
        for (int64_t j = 0; j < count; j++) add(&read, entries[j].key, values[j]);
        if (!is_in) bench_start();
        for (int64_t j = 0; j < count; j++) free(values[j].bytes);
        if (!is_in) bench_stop();
        bench_sample((double)(count * blob_bytes) / 1e6, written, read);
        close_store();
    }
    for (int64_t i = 0; i < count; i++) free(blobs[i]);
    free(blobs), free(values), free(entries);
}
