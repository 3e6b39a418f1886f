#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "floor.h"

// The work that a store's queue is for, by hand: many short reads, writes next to a long read,
// small batches, and many idle connections.

// MARK: read-one: a transaction for each lookup

static bench_check time_reads(sqlite3_stmt *find, sqlite3_stmt *begin, sqlite3_stmt *commit, int64_t rows) {
    bench_check read = {0};
    floor_record *records = malloc((size_t)rows * sizeof *records);
    bench_start();
    for (int64_t i = 0; i < rows; i++) {
        floor_end(begin);
        floor_find(find, bench_shuffled(i, rows) + 1, records + i);
        floor_end(commit);
    }
    bench_stop();
    for (int64_t i = 0; i < rows; i++) {
        bench_check_found(&read, bench_shuffled(i, rows) + 1, records + i);
        floor_release(records + i);
    }
    free(records);
    return read;
}

static void read_one(bench_arguments arguments) {
    floor_fill(arguments, arguments.rows);
    floor_open(arguments, false);
    sqlite3_stmt *find = floor_prepare(FLOOR_FIND);
    sqlite3_stmt *begin = floor_prepare("BEGIN"), *commit = floor_prepare("COMMIT");
    bench_check written = floor_sum_of_finds(arguments.rows, arguments.rows);
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_sample((double)arguments.rows, written, time_reads(find, begin, commit, arguments.rows));
    }
    sqlite3_finalize(find), sqlite3_finalize(begin), sqlite3_finalize(commit);
    floor_close();
}

// MARK: read-empty: transactions without a statement

static void read_nothing(bench_arguments arguments) {
    floor_fill(arguments, 1);
    floor_open(arguments, false);
    sqlite3_stmt *begin = floor_prepare("BEGIN"), *commit = floor_prepare("COMMIT");
    bench_check counted = {.sum = (uint64_t)arguments.rows};
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_check ended = {0};
        bench_start();
        for (int64_t j = 0; j < arguments.rows; j++) {
            floor_end(begin);
            floor_end(commit);
            ended.sum++;
        }
        bench_stop();
        bench_sample((double)arguments.rows, counted, ended);
    }
    sqlite3_finalize(begin), sqlite3_finalize(commit);
    floor_close();
}

// MARK: W6-beside: durable writes, and the same during one long read

typedef struct {
    bench_arguments arguments;
    atomic_bool has_begun, is_over;
} long_read;

static void *read_long(void *context) {
    long_read *self = context;
    char key[99];
    int key_bytes = floor_key(key, bench_key);
    sqlite3 *connection = floor_open_file(self->arguments.path, key, key_bytes);
    floor_configure(connection, self->arguments);
    sqlite3_stmt *find = NULL;
    sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(connection, FLOOR_FIND, -1, &find, NULL) != SQLITE_OK) bench_fail("read", sqlite3_errmsg(connection));
    for (int64_t i = 0; !self->is_over; i++) {
        floor_record record;
        floor_find(find, bench_shuffled(i, self->arguments.rows) + 1, &record);
        floor_release(&record);
        self->has_begun = true;
        usleep(bench_pause_us);
    }
    sqlite3_finalize(find);
    sqlite3_close(connection);
    return NULL;
}

static void write_each(sqlite3_stmt *insert, const bench_record *records, int64_t count, double *latencies) {
    for (int64_t i = 0; i < count; i++) {
        double start = bench_now();
        floor_begin();
        floor_insert(insert, records + i, 1);
        floor_commit();
        latencies[i] = bench_now() - start;
    }
}

static void write_beside(bench_arguments arguments) {
    int64_t count = arguments.rows;
    // C bounds the log by nothing, so both figures are of the same work.
    bool is_small = bench_is(arguments, "W6-beside-4mb");
    bench_record *records = bench_records_make(count + 1, 2 * count, 1);
    double *latencies = malloc(2 * (size_t)count * sizeof *latencies);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = floor_fill(arguments, count);
        written.sum += floor_sum(records, 2 * count).sum;
        floor_open(arguments, false);
        sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT), *select = floor_prepare(FLOOR_SELECT);
        write_each(insert, records, count, latencies);

        long_read reading = {.arguments = arguments};
        pthread_t reader;
        if (pthread_create(&reader, NULL, read_long, &reading) != 0) bench_fail("thread", "none left");
        while (!reading.has_begun) usleep(bench_pause_us);
        write_each(insert, records + count, count, latencies + count);
        reading.is_over = true;
        pthread_join(reader, NULL);

        bench_check read = floor_sum_of_file(select);
        if (!is_small) bench_latencies("W6-quiet", latencies, count, written, read);
        bench_latencies(arguments.workload, latencies + count, count, written, read);
        sqlite3_finalize(insert), sqlite3_finalize(select);
        floor_close();
    }
    free(latencies);
    bench_records_free(records, 2 * count);
}

// MARK: watch-…: transactions of some rows each; nobody watches in C

static void insert_batches(bench_arguments arguments) {
    bench_record *records = bench_records_make(1, arguments.rows, 1);
    bench_check written = floor_sum(records, arguments.rows);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        floor_open(arguments, true);
        sqlite3_stmt *insert = floor_prepare(FLOOR_INSERT), *select = floor_prepare(FLOOR_SELECT);
        bench_start();
        for (int64_t j = 0; j < arguments.rows; j += bench_batch) {
            int64_t left = arguments.rows - j;
            floor_begin();
            floor_insert(insert, records + j, left < bench_batch ? left : bench_batch);
            floor_commit();
        }
        bench_stop();
        bench_sample((double)arguments.rows, written, floor_sum_of_file(select));
        sqlite3_finalize(insert), sqlite3_finalize(select);
        floor_close();
    }
    bench_records_free(records, arguments.rows);
}

// MARK: idle: many stores, each with a writer and a reader that have worked

static sqlite3 *open_and_read(bench_arguments arguments, const char *path) {
    char key[99];
    int key_bytes = floor_key(key, bench_key);
    sqlite3 *connection = floor_open_file(path, key, key_bytes);
    floor_configure(connection, arguments);
    floor_read_schema(connection);
    return connection;
}

static void hold_idle(bench_arguments arguments) {
    bench_resources before = bench_resources_now();
    sqlite3 **connections = malloc(2 * (size_t)arguments.rows * sizeof *connections);
    char path[4096];
    bench_start();
    for (int64_t i = 0; i < arguments.rows; i++) {
        // The first has the name that the driver knows.
        snprintf(path, sizeof path, i == 0 ? "%s" : "%s-%lld", arguments.path, (long long)i);
        sqlite3 *writer = db = open_and_read(arguments, path);
        floor_run("PRAGMA journal_mode = WAL");
        floor_run(BENCH_CREATE_ITEM);
        connections[2 * i] = writer;
        connections[2 * i + 1] = open_and_read(arguments, path);
    }
    bench_stop();
    db = connections[0];
    floor_describe();
    bench_idle(arguments.rows, before);
    for (int64_t i = 0; i < 2 * arguments.rows; i++) sqlite3_close(connections[i]);
    free(connections);
}

void floor_queue(bench_arguments arguments) {
    if (bench_is(arguments, "read-one")) return read_one(arguments);
    if (bench_is(arguments, "read-empty")) return read_nothing(arguments);
    if (strncmp(arguments.workload, "W6-beside", 9) == 0) return write_beside(arguments);
    if (bench_is(arguments, "idle")) return hold_idle(arguments);
    insert_batches(arguments);
}
