#include <string.h>

#include "floor.h"

// W6: one record in each transaction, on disk before the next one begins. Many concurrent writers
// cannot share a connection in C without a hand-written queue; so both forms are this loop here.
//
// As "c-grouped" it is Coffer's group commit without a queue and threads: one commit for as many
// writes as there are writers, a savepoint for each but the first.

static void insert_in_groups(sqlite3_stmt *insert, const bench_record *records, int64_t count) {
    sqlite3_stmt *savepoint = floor_prepare("SAVEPOINT member"), *release = floor_prepare("RELEASE member");
    for (int64_t i = 0; i < count; i++) {
        bool is_first = i % bench_writers == 0;
        bool is_last = i % bench_writers == bench_writers - 1 || i == count - 1;
        is_first ? floor_begin() : floor_end(savepoint);
        floor_insert(insert, records + i, 1);
        if (!is_first) floor_end(release);
        if (is_last) floor_commit();
    }
    sqlite3_finalize(savepoint), sqlite3_finalize(release);
}

void floor_durable(bench_arguments arguments) {
    bench_record *records = bench_records_make(1, arguments.rows, 1);
    bench_check written = floor_sum(records, arguments.rows);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        floor_open(arguments, true);
        sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT), *select = floor_prepare(FLOOR_SELECT);
        bench_start();
        if (strcmp(arguments.system, "c-grouped") == 0) {
            insert_in_groups(insert, records, arguments.rows);
        } else {
            for (int64_t j = 0; j < arguments.rows; j++) {
                floor_begin();
                floor_insert(insert, records + j, 1);
                floor_commit();
            }
        }
        bench_stop();
        bench_sample((double)arguments.rows, written, floor_sum_of_file(select));
        sqlite3_finalize(insert), sqlite3_finalize(select);
        floor_close();
    }
    bench_records_free(records, arguments.rows);
}
