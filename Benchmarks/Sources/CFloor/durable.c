#include "floor.h"

// W6: one record in each transaction, on disk before the next one begins. Many writers at once
// cannot share a connection in C without a queue of one's own; so both forms are this loop here.

void floor_durable(bench_arguments arguments) {
    bench_record *records = bench_records_make(1, arguments.rows, 1);
    bench_check written = floor_sum(records, arguments.rows);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        floor_open(arguments, true);
        sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT), *select = floor_prepare(FLOOR_SELECT);
        bench_start();
        for (int64_t j = 0; j < arguments.rows; j++) {
            floor_begin();
            floor_insert(insert, records + j, 1);
            floor_commit();
        }
        bench_stop();
        bench_sample((double)arguments.rows, written, floor_sum_of_file(select));
        sqlite3_finalize(insert), sqlite3_finalize(select);
        floor_close();
    }
    bench_records_free(records, arguments.rows);
}
