#include "floor.h"

// How the cost of each verb grows with the number of rows. Records are made in portions, so that a
// store of ten million needs no memory for all of them.

enum { portion = 10000, lookups = 10000 };

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
