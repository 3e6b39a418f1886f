#include <stdlib.h>

#include "floor.h"

// MARK: Rows

static inline void bind_all(sqlite3_stmt *statement, const bench_record *record) {
    int code = sqlite3_bind_int64(statement, 1, record->id);
    code |= sqlite3_bind_text(statement, 2, record->name.bytes, record->name.count, SQLITE_STATIC);
    code |= sqlite3_bind_text(statement, 3, record->url.bytes, record->url.count, SQLITE_STATIC);
    code |= sqlite3_bind_text(statement, 4, record->kind.bytes, record->kind.count, SQLITE_STATIC);
    code |= sqlite3_bind_double(statement, 5, record->x);
    code |= sqlite3_bind_double(statement, 6, record->y);
    code |= sqlite3_bind_double(statement, 7, record->created);
    code |= sqlite3_bind_int64(statement, 8, record->flag);
    // A null pointer binds NULL.
    code |= sqlite3_bind_text(statement, 9, record->note.bytes, record->note.count, SQLITE_STATIC);
    code |= sqlite3_bind_blob(statement, 10, record->data.bytes, record->data.count, SQLITE_STATIC);
    if (code != SQLITE_OK) floor_fail("bind");
}

#ifdef FLOOR_OWNS_VALUES

// Each value has its own memory block, as Swift's values do; as "c-values" it is the floor for
// systems with such values.

static bench_bytes owned(bench_bytes bytes) {
    if (bytes.bytes == NULL) return bytes;
    void *copy = malloc(bytes.count > 0 ? (size_t)bytes.count : 1);
    if (copy == NULL) bench_fail("memory", "none left");
    return (bench_bytes){memcpy(copy, bytes.bytes, (size_t)bytes.count), bytes.count};
}

static inline void own(
    floor_record *record, bench_bytes name, bench_bytes url, bench_bytes kind, bench_bytes note, bench_bytes data) {
    record->name = owned(name);
    record->url = owned(url);
    record->kind = owned(kind);
    record->note = owned(note);
    record->data = owned(data);
}

void floor_release(floor_record *record) {
    free((void *)record->name.bytes);
    free((void *)record->url.bytes);
    free((void *)record->kind.bytes);
    free((void *)record->note.bytes);
    free((void *)record->data.bytes);
}

#else

/// One block for all the bytes of a row. It begins with the name, by which it is freed.
static inline void own(
    floor_record *record, bench_bytes name, bench_bytes url, bench_bytes kind, bench_bytes note, bench_bytes data) {
    size_t total = (size_t)name.count + (size_t)url.count + (size_t)kind.count + (size_t)note.count + (size_t)data.count;
    char *end = malloc(total > 0 ? total : 1);
    if (end == NULL) bench_fail("memory", "none left");
    record->name = copied(&end, name);
    record->url = copied(&end, url);
    record->kind = copied(&end, kind);
    record->note = note.bytes == NULL ? note : copied(&end, note);
    record->data = copied(&end, data);
}

void floor_release(floor_record *record) { free((void *)record->name.bytes); }

#endif

static inline void read_all(sqlite3_stmt *statement, floor_record *record) {
    record->id = integer_of(sqlite3_column_value(statement, 0));
    bench_bytes name = text_of(sqlite3_column_value(statement, 1));
    bench_bytes url = text_of(sqlite3_column_value(statement, 2));
    bench_bytes kind = text_of(sqlite3_column_value(statement, 3));
    record->x = real_of(sqlite3_column_value(statement, 4));
    record->y = real_of(sqlite3_column_value(statement, 5));
    record->created = real_of(sqlite3_column_value(statement, 6));
    record->flag = integer_of(sqlite3_column_value(statement, 7)) != 0;
    sqlite3_value *ninth = sqlite3_column_value(statement, 8);
    bench_bytes note = sqlite3_value_type(ninth) == SQLITE_NULL ? (bench_bytes){NULL, 0} : text_of(ninth);
    bench_bytes data = blob_of(sqlite3_column_value(statement, 9));
    own(record, name, url, kind, note, data);
}

// MARK: Verbs

void floor_insert(sqlite3_stmt *statement, const bench_record *records, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        bind_all(statement, records + i);
        if (sqlite3_step(statement) != SQLITE_DONE) floor_fail("insert");
        sqlite3_reset(statement);
    }
}

void floor_update(sqlite3_stmt *statement, const bench_record *records, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        bind_all(statement, records + bench_shuffled(i, count));
        if (sqlite3_step(statement) != SQLITE_DONE) floor_fail("update");
        sqlite3_reset(statement);
        if (sqlite3_changes(db) != 1) bench_fail("update", "no such row");
    }
}

floor_record *floor_fetch(sqlite3_stmt *statement, int64_t *count) {
    int64_t room = 16, found = 0;
    floor_record *records = malloc((size_t)room * sizeof *records);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (found == room) records = realloc(records, (size_t)(room *= 2) * sizeof *records);
        if (records == NULL) bench_fail("memory", "none left");
        read_all(statement, records + found++);
    }
    if (code != SQLITE_DONE) floor_fail("fetch");
    sqlite3_reset(statement);
    *count = found;
    return records;
}

void floor_find(sqlite3_stmt *statement, int64_t id, floor_record *record) {
    if (sqlite3_bind_int64(statement, 1, id) != SQLITE_OK) floor_fail("bind");
    floor_take(statement, record);
}

void floor_take(sqlite3_stmt *statement, floor_record *record) {
    if (sqlite3_step(statement) != SQLITE_ROW) floor_fail("find");
    read_all(statement, record);
    sqlite3_reset(statement);
}

/// Reads a row where it is, with the checks of read_all and without a copy.
static inline uint64_t digest(sqlite3_stmt *statement) {
    bench_record record = {0};
    record.id = integer_of(sqlite3_column_value(statement, 0));
    record.name = text_of(sqlite3_column_value(statement, 1));
    record.url = text_of(sqlite3_column_value(statement, 2));
    record.kind = text_of(sqlite3_column_value(statement, 3));
    record.x = real_of(sqlite3_column_value(statement, 4));
    record.y = real_of(sqlite3_column_value(statement, 5));
    record.created = real_of(sqlite3_column_value(statement, 6));
    record.flag = integer_of(sqlite3_column_value(statement, 7)) != 0;
    sqlite3_value *ninth = sqlite3_column_value(statement, 8);
    if (sqlite3_value_type(ninth) != SQLITE_NULL) record.note = text_of(ninth);
    record.data = blob_of(sqlite3_column_value(statement, 9));
    return bench_digest(&record);
}

// MARK: W1 to W4

bench_check floor_sum(const bench_record *records, int64_t count) {
    bench_check check = {0};
    for (int64_t i = 0; i < count; i++) bench_check_record(&check, records + i);
    return check;
}

void floor_release_all(floor_record *records, int64_t count) {
    for (int64_t i = 0; i < count; i++) floor_release(records + i);
    free(records);
}

bench_check floor_sum_of_file(sqlite3_stmt *select) {
    int64_t count;
    floor_record *records = floor_fetch(select, &count);
    bench_check check = floor_sum(records, count);
    floor_release_all(records, count);
    return check;
}

bench_check floor_time_fetch(sqlite3_stmt *select) {
    int64_t count;
    bench_start();
    floor_begin();
    floor_record *records = floor_fetch(select, &count);
    floor_commit();
    bench_stop();
    bench_check read = floor_sum(records, count);
    bench_start();
    floor_release_all(records, count);
    bench_stop();
    return read;
}

static bench_check time_scan(sqlite3_stmt *select) {
    bench_check read = {0};
    bench_start();
    floor_begin();
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW) read.sum += digest(select);
    if (code != SQLITE_DONE) floor_fail("scan");
    sqlite3_reset(select);
    floor_commit();
    bench_stop();
    return read;
}

/// The sum that time_scan must find.
static bench_check sum_of_digests(int64_t count) {
    bench_check check = {0};
    bench_record *records = bench_records_make(1, count, 1);
    for (int64_t i = 0; i < count; i++) check.sum += bench_digest(records + i);
    bench_records_free(records, count);
    return check;
}

bench_check floor_time_finds(sqlite3_stmt *find, int64_t lookups, int64_t rows) {
    bench_check read = {0};
    floor_record *records = malloc((size_t)lookups * sizeof *records);
    bench_start();
    floor_begin();
    for (int64_t i = 0; i < lookups; i++) floor_find(find, bench_shuffled(i, rows) + 1, records + i);
    floor_commit();
    bench_stop();
    for (int64_t i = 0; i < lookups; i++) bench_check_found(&read, bench_shuffled(i, rows) + 1, records + i);
    bench_start();
    floor_release_all(records, lookups);
    bench_stop();
    return read;
}

bench_check floor_sum_of_finds(int64_t lookups, int64_t rows) {
    bench_check check = {0};
    for (int64_t i = 0; i < lookups; i++) {
        int64_t id = bench_shuffled(i, rows) + 1;
        bench_record *record = bench_records_make(id, 1, 1);
        bench_check_found(&check, id, record);
        bench_records_free(record, 1);
    }
    return check;
}

bench_check floor_fill(bench_arguments arguments, int64_t count) {
    bench_remove(arguments.path);
    floor_open(arguments, true);
    sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT);
    bench_record *records = bench_records_make(1, count, 1);
    bench_check written = floor_sum(records, count);
    floor_begin();
    floor_insert(insert, records, count);
    floor_commit();
    sqlite3_finalize(insert);
    bench_records_free(records, count);
    floor_close();
    return written;
}

static void write_each(bench_arguments arguments, bool is_update) {
    int64_t count = arguments.rows;
    bench_record *before = bench_records_make(1, count, 1), *after = bench_records_make(1, count, 2);
    bench_check written = floor_sum(after, count);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        floor_open(arguments, true);
        sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT), *update = floor_prepare(FLOOR_UPDATE);
        sqlite3_stmt *select = floor_prepare(FLOOR_SELECT);
        // Warm: every statement has run once, and the file has its first pages.
        floor_begin();
        floor_insert(insert, before, is_update ? count : 1);
        floor_update(update, before, 1);
        if (!is_update) floor_run("DELETE FROM item");
        floor_commit();
        bench_start();
        floor_begin();
        if (is_update) {
            floor_update(update, after, count);
        } else {
            floor_insert(insert, after, count);
        }
        floor_commit();
        bench_stop();
        bench_sample((double)count, written, floor_sum_of_file(select));
        sqlite3_finalize(insert), sqlite3_finalize(update), sqlite3_finalize(select);
        floor_close();
    }
    bench_records_free(before, count), bench_records_free(after, count);
}

void floor_records(bench_arguments arguments) {
    if (bench_is(arguments, "W1") || bench_is(arguments, "W1-bind")) return write_each(arguments, false);
    if (bench_is(arguments, "W4")) return write_each(arguments, true);
    bench_check written = floor_fill(arguments, arguments.rows);
    floor_open(arguments, false);
    sqlite3_stmt *select = floor_prepare(FLOOR_SELECT), *find = floor_prepare(FLOOR_FIND);
    // Lookups of many keys are also compared with a loop of single lookups.
    bool is_find = bench_is(arguments, "W3") || bench_is(arguments, "W3-many");
    bool is_scan = bench_is(arguments, "W2-borrow");
    if (is_find) written = floor_sum_of_finds(arguments.rows, arguments.rows);
    if (is_scan) written = sum_of_digests(arguments.rows);
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_check read = is_find   ? floor_time_finds(find, arguments.rows, arguments.rows)
                           : is_scan ? time_scan(select)
                                     : floor_time_fetch(select);
        bench_sample((double)arguments.rows, written, read);
    }
    sqlite3_finalize(select), sqlite3_finalize(find);
    floor_close();
}
