#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "floor.h"

// W6-latency: threads that write one record in each transaction on a connection they share, while
// others look up on connections of their own, until the writers are done.

// The writers' queue: first come, first served. With a bare mutex the thread that unlocks it mostly
// gets it again, and the others starve.
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turns[bench_writers];
static int64_t next_ticket, served_ticket;

static void wait_for_turn(void) {
    pthread_mutex_lock(&door);
    int64_t ticket = next_ticket++;
    while (ticket != served_ticket) pthread_cond_wait(&turns[ticket % bench_writers], &door);
    pthread_mutex_unlock(&door);
}

static void end_turn(void) {
    pthread_mutex_lock(&door);
    served_ticket++;
    pthread_cond_signal(&turns[served_ticket % bench_writers]);
    pthread_mutex_unlock(&door);
}

typedef struct {
    pthread_t thread;
    int64_t number, count, room;
    double *latencies;
    sqlite3 *connection;
    sqlite3_stmt *find;
} worker;

// Shared by the writers; set before they begin.
static sqlite3_stmt *insert;
static const bench_record *records;
static int64_t record_count;
static atomic_bool is_written;

static void add(worker *self, double latency) {
    if (self->count == self->room) {
        self->room = self->room * 2 + 1024;
        self->latencies = realloc(self->latencies, (size_t)self->room * sizeof(double));
        if (self->latencies == NULL) bench_fail("memory", "none left");
    }
    self->latencies[self->count++] = latency;
}

static void *write_some(void *context) {
    worker *self = context;
    for (int64_t i = self->number; i < record_count; i += bench_writers) {
        double start = bench_now();
        wait_for_turn();
        floor_begin();
        floor_insert(insert, records + i, 1);
        floor_commit();
        end_turn();
        add(self, bench_now() - start);
    }
    return NULL;
}

static void *find_some(void *context) {
    worker *self = context;
    for (int64_t i = self->number; !is_written; i += bench_readers) {
        floor_record record;
        double start = bench_now();
        floor_find(self->find, bench_shuffled(i, record_count) + 1, &record);
        floor_release(&record);
        add(self, bench_now() - start);
        usleep(bench_pause_us);
    }
    return NULL;
}

static void start(worker *workers, int64_t count, void *body(void *)) {
    for (int64_t i = 0; i < count; i++) {
        workers[i].number = i;
        if (pthread_create(&workers[i].thread, NULL, body, workers + i) != 0) bench_fail("thread", "none left");
    }
}

/// Waits for all threads, and gathers their latencies in the first.
static void join(worker *workers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        for (int64_t j = 0; i > 0 && j < workers[i].count; j++) add(workers, workers[i].latencies[j]);
    }
}

/// A reader that meets the head of the WAL half written takes the write lock for a moment, and the
/// writer finds it taken.
static void wait_when_busy(sqlite3 *connection) { sqlite3_busy_timeout(connection, 10000); }

static void open_reader(bench_arguments arguments, worker *reader) {
    char key[99];
    int key_bytes = floor_key(key, bench_key);
    db = reader->connection = floor_open_file(arguments.path, key, key_bytes);
    floor_configure(reader->connection, arguments);
    wait_when_busy(reader->connection);
    reader->find = floor_prepare(FLOOR_FIND);
    // Runs once before the clock, so that no latency contains the opening.
    floor_record record;
    floor_find(reader->find, 1, &record);
    floor_release(&record);
}

static void sample(bench_arguments arguments, bench_check written) {
    worker writers[bench_writers] = {0}, readers[bench_readers] = {0};
    for (int i = 0; i < bench_readers; i++) open_reader(arguments, readers + i);
    floor_open(arguments, false);
    wait_when_busy(db);
    insert = floor_prepare(FLOOR_INSERT);
    is_written = false;
    start(readers, bench_readers, find_some);
    start(writers, bench_writers, write_some);
    join(writers, bench_writers);
    is_written = true;
    join(readers, bench_readers);
    sqlite3_stmt *select = floor_prepare(FLOOR_SELECT);
    bench_check read = floor_sum_of_file(select);
    bench_latencies("W6-latency", writers->latencies, writers->count, written, read);
    bench_latencies("W6-latency-read", readers->latencies, readers->count, written, read);
    sqlite3_finalize(select), sqlite3_finalize(insert);
    floor_close();
    for (int i = 0; i < bench_writers; i++) free(writers[i].latencies);
    for (int i = 0; i < bench_readers; i++) {
        free(readers[i].latencies);
        sqlite3_finalize(readers[i].find), sqlite3_close(readers[i].connection);
    }
}

void floor_latency(bench_arguments arguments) {
    record_count = arguments.rows;
    for (int i = 0; i < bench_writers; i++) pthread_cond_init(turns + i, NULL);
    // The readers look up the rows that exist before the writers begin.
    bench_record *added = bench_records_make(arguments.rows + 1, arguments.rows, 1);
    records = added;
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_check written = floor_fill(arguments, arguments.rows);
        written.sum += floor_sum(added, arguments.rows).sum;
        sample(arguments, written);
    }
    bench_records_free(added, arguments.rows);
}
