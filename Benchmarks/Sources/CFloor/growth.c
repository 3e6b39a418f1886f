#include <stdlib.h>

#include "floor.h"

// How the cost of each verb grows with the number of rows. Records are made in portions, so that a
// store of ten million needs no memory for all of them.

enum { portion = 10000, lookups = 10000, ranges = 1000, range_rows = 100 };

static bench_check insert_all(int64_t rows) {
    bench_check written = {0};
    sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT);
    bench_start();
    floor_begin();
    bench_stop();
    for (int64_t first = 1; first <= rows; first += portion) {
        int64_t count = rows - first + 1 < portion ? rows - first + 1 : portion;
        bench_record *records = bench_records_make(first, count, 1);
        bench_start();
        floor_insert(insert, records, count);
        bench_stop();
        written.sum += floor_sum(records, count).sum;
        bench_records_free(records, count);
    }
    bench_start();
    floor_commit();
    bench_stop();
    sqlite3_finalize(insert);
    return written;
}

/// Looks up rows by a text that has an index. The texts are made off the clock.
static void find_by_name(int64_t rows, bench_check *written, bench_check *read) {
    sqlite3_stmt *find = floor_prepare(FLOOR_SELECT " WHERE name = ?1");
    bench_record *expected[lookups];
    floor_record *found = malloc(lookups * sizeof *found);
    for (int64_t i = 0; i < lookups; i++) expected[i] = bench_records_make(bench_shuffled(i, rows) + 1, 1, 1);
    bench_start();
    floor_begin();
    for (int64_t i = 0; i < lookups; i++) {
        bench_bytes name = expected[i]->name;
        if (sqlite3_bind_text(find, 1, name.bytes, name.count, SQLITE_STATIC) != SQLITE_OK) floor_fail("bind");
        floor_take(find, found + i);
    }
    floor_commit();
    bench_stop();
    for (int64_t i = 0; i < lookups; i++) {
        bench_check_record(written, expected[i]), bench_check_record(read, found + i);
        bench_records_free(expected[i], 1), floor_release(found + i);
    }
    free(found);
    sqlite3_finalize(find);
}

/// Fetches rows that follow each other.
static void find_ranges(int64_t rows, bench_check *written, bench_check *read) {
    sqlite3_stmt *select = floor_prepare(FLOOR_SELECT " WHERE id BETWEEN ?1 AND ?2");
    for (int64_t i = 0; i < ranges; i++) {
        int64_t first = bench_shuffled(i, rows - range_rows) + 1, count;
        bench_start();
        if (i == 0) floor_begin();
        if (sqlite3_bind_int64(select, 1, first) != SQLITE_OK) floor_fail("bind");
        if (sqlite3_bind_int64(select, 2, first + range_rows - 1) != SQLITE_OK) floor_fail("bind");
        floor_record *found = floor_fetch(select, &count);
        if (i == ranges - 1) floor_commit();
        bench_stop();
        read->sum += floor_sum(found, count).sum;
        floor_release_all(found, count);
        bench_record *expected = bench_records_make(first, range_rows, 1);
        written->sum += floor_sum(expected, range_rows).sum;
        bench_records_free(expected, range_rows);
    }
    sqlite3_finalize(select);
}

/// Counts the rows of each kind. The driver compares what the systems found.
static void group(bench_check *written, bench_check *read) {
    sqlite3_stmt *select = floor_prepare("SELECT kind, count(*) FROM item GROUP BY kind");
    bench_start();
    floor_begin();
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        bench_bytes kind = text_of(sqlite3_column_value(select, 0));
        bench_check_bytes(read, kind.bytes, kind.count);
        bench_check_integer(read, integer_of(sqlite3_column_value(select, 1)));
        bench_check_end_row(read);
    }
    if (code != SQLITE_DONE) floor_fail("group");
    sqlite3_reset(select);
    floor_commit();
    bench_stop();
    *written = *read;
    sqlite3_finalize(select);
}

/// The checks of pages and structure that the engine has.
static void verify(bench_check *read) {
    bench_start();
    read->sum = (uint64_t)floor_all_problems();
    bench_stop();
}

/// Makes the index once, after the figures that must not have it.
static void prepare(bench_arguments arguments) {
    if (!bench_is(arguments, "growth-index")) return;
    floor_run("CREATE INDEX IF NOT EXISTS item_name ON item (name)");
    floor_run("PRAGMA wal_checkpoint(TRUNCATE)");
}

void floor_growth(bench_arguments arguments) {
    bench_check written = {0}, read = {0};
    if (bench_is(arguments, "growth-insert")) {
        bench_remove(arguments.path);
        floor_open(arguments, true);
        written = insert_all(arguments.rows);
        sqlite3_stmt *select = floor_prepare(FLOOR_SELECT);
        read = floor_sum_of_file(select);
        sqlite3_finalize(select);
        bench_sample((double)arguments.rows, written, read);
        floor_close();
        return;
    }
    // The file is the one that growth-insert left. It is opened once before, to print how it is set
    // up.
    floor_open(arguments, false);
    prepare(arguments);
    floor_close();
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check nothing = {0};
        written = read = nothing;
        if (bench_is(arguments, "growth-open")) {
            bench_start();
            floor_open(arguments, false);
            sqlite3_stmt *find = floor_prepare(FLOOR_FIND);
            floor_record record;
            floor_find(find, arguments.rows, &record);
            bench_stop();
            bench_check_record(&read, &record);
            floor_release(&record);
            sqlite3_finalize(find);
            bench_record *expected = bench_records_make(arguments.rows, 1, 1);
            bench_check_record(&written, expected);
            bench_records_free(expected, 1);
        } else if (bench_is(arguments, "growth-index")) {
            floor_open(arguments, false);
            find_by_name(arguments.rows, &written, &read);
        } else if (bench_is(arguments, "growth-range")) {
            floor_open(arguments, false);
            find_ranges(arguments.rows, &written, &read);
        } else if (bench_is(arguments, "growth-group")) {
            floor_open(arguments, false);
            group(&written, &read);
        } else if (bench_is(arguments, "growth-verify")) {
            floor_open(arguments, false);
            verify(&read);
        } else {
            floor_open(arguments, false);
            sqlite3_stmt *find = floor_prepare(FLOOR_FIND), *select = floor_prepare(FLOOR_SELECT);
            if (bench_is(arguments, "growth-get")) {
                written = floor_sum_of_finds(lookups, arguments.rows);
                read = floor_time_finds(find, lookups, arguments.rows);
            } else {
                // The driver compares the sum with that of growth-insert.
                read = written = floor_time_fetch(select);
            }
            sqlite3_finalize(find), sqlite3_finalize(select);
        }
        bench_sample((double)arguments.rows, written, read);
        floor_close();
    }
}
