// Shared by every system of the comparison: the data, the checks and the clock.
//
// It is in C so that the floor and Swift write the same bytes and are measured by the same calls.
// Nothing in here is part of what is measured.

#ifndef COFFER_BENCH_WORKLOAD_H
#define COFFER_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

// MARK: Data

/// Bytes with their count; `bytes` is null for NULL. Texts are UTF-8, not ended by NUL.
typedef struct {
    const char *bytes;
    int32_t count;
} bench_bytes;

/// One row of W1 to W4 and W6: ten columns.
typedef struct {
    int64_t id;
    bench_bytes name, url, kind;
    double x, y;
    /// Seconds since 1970, with eighths: exact in every representation.
    double created;
    bool flag;
    /// Absent in every third row.
    bench_bytes note;
    bench_bytes data;
} bench_record;

/// W6-latency: the number of writers, of tasks that look up at the same time, and the pause of each
/// of these after a lookup. Without the pause readers take all cores, and fast ones delay their own
/// writers. watch-…: the number of rows that each transaction inserts.
enum { bench_writers = 64, bench_readers = 4, bench_pause_us = 1000, bench_batch = 100 };

/// sweep-…: writes, and the time from one to the next; each sets one of 1 000 entries.
enum { bench_paced_writes = 5000, bench_pace_us = 1000, bench_paced_keys = 1000 };

/// One entry of W5: 16 bytes of key, 100 of value.
typedef struct {
    uint8_t key[16];
    uint8_t value[100];
} bench_entry;

/// Makes records `first` to `first + count - 1`; another `version` has other values under the same
/// ids. The values follow from the id, the version and a fixed seed alone.
bench_record *bench_records_make(int64_t first, int64_t count, int32_t version);
void bench_records_free(bench_record *records, int64_t count);
bench_entry *bench_entries_make(int64_t count, int32_t version);

/// One row of flights-…: real data, whose texts are in the file that was read. A value that the
/// file does not have is bench_unknown, or no bytes.
typedef struct {
    int64_t id, year, month, day, departure, scheduledDeparture, departureDelay, arrival, scheduledArrival, arrivalDelay;
    bench_bytes carrier;
    int64_t flight;
    bench_bytes tailNumber, origin, destination;
    int64_t airTime, distance, hour, minute;
    /// Seconds since 1970.
    double scheduled;
} bench_flight;

static const int64_t bench_unknown = INT64_MIN;

/// The first `count` rows of the file that COFFER_FLIGHTS names in the environment. They and their texts
/// stay until the process ends.
const bench_flight *bench_flights_read(int64_t count);

/// The i-th integer of W5-get-integers; half of them are negative.
static inline int64_t bench_integer(int64_t i) { return i % 2 == 0 ? i * 1000003 : -i * 1000003; }

/// `count` bytes that do not compress.
uint8_t *bench_blob_make(int64_t count, int64_t number);

/// The position of the i-th lookup among `count` rows: each once, in an order without a pattern.
int64_t bench_shuffled(int64_t i, int64_t count);

/// The tables, as Coffer makes them for the same record and bucket.
#define BENCH_CREATE_ITEM \
    "CREATE TABLE item (id INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL, url TEXT NOT NULL, " \
    "kind TEXT NOT NULL, x REAL NOT NULL, y REAL NOT NULL, created REAL NOT NULL, " \
    "flag INTEGER NOT NULL, note TEXT, data BLOB NOT NULL)"
#define BENCH_CREATE_ENTRY \
    "CREATE TABLE entry (key BLOB PRIMARY KEY NOT NULL, value) WITHOUT ROWID"

/// With the indexes.
extern const char *const bench_create_flight;

// MARK: Checks

/// A running sum over what was written or read. The order of rows does not matter.
typedef struct {
    uint64_t sum;
    uint64_t row;
} bench_check;

void bench_check_integer(bench_check *check, int64_t value);
void bench_check_real(bench_check *check, double value);
/// A null pointer counts as NULL, unless the count is negative.
void bench_check_bytes(bench_check *check, const void *bytes, int64_t count);
void bench_check_null(bench_check *check);
/// Ends the row and adds it to the sum.
void bench_check_end_row(bench_check *check);
void bench_check_record(bench_check *check, const bench_record *record);
/// A row of a lookup: the requested id, and the record found under it.
void bench_check_found(bench_check *check, int64_t asked, const bench_record *record);
/// A row that is read in place: the sum of its numbers and byte counts, as W2-borrow reads it.
uint64_t bench_digest(const bench_record *record);
void bench_check_flight(bench_check *check, const bench_flight *flight);
void bench_check_entry(bench_check *check, const bench_entry *entry);

// MARK: The run

/// The options of the command line: `<system> <workload> <rows> <repeats> <path>`.
typedef struct {
    const char *system, *workload, *path;
    int64_t rows, repeats;
    /// For page caches: 64 MB, 2 MB in W2d, and 0 for what the system has by itself in
    /// W5-get-default.
    int64_t cache_kib;
    /// Whether a returned write has survived power loss: all of W6, rotations and serve-….
    bool full_sync;
} bench_arguments;

bench_arguments bench_parse(int count, char **values);
bool bench_is(bench_arguments arguments, const char *workload);
/// Removes the store at the path with all files that belong to it.
void bench_remove(const char *path);
int64_t bench_file_bytes(const char *path);
/// Copies the file with one bit of a page in its middle changed, which a check of it must find.
void bench_copy_damaged(const char *path, const char *copy);

/// The key of all stores: 32 bytes, then 16 bytes of salt. It protects nothing.
extern const uint8_t bench_key[48];
extern const uint8_t bench_other_key[48];
/// The passphrase of the stores that are opened by one.
extern const char *const bench_passphrase;

/// Starts or resumes the clock and callgrind's counting.
void bench_start(void);
/// Stops both. A sample may consist of several parts, with checks between them.
void bench_stop(void);
/// Whether the samples that follow only warm up: neither counted nor printed, but checked.
void bench_warm(bool is_warming);
/// Prints the sample, then begins the next. Ends the process with 1 if the checks differ.
void bench_sample(double units, bench_check written, bench_check read);
/// Prints percentiles of the durations of `count` calls, in µs, as a sample of a separate figure.
/// Sorts the latencies. Ends the process with 1 if the checks differ.
void bench_latencies(const char *workload, double *latencies, int64_t count, bench_check written, bench_check read);
/// Prints a separate figure of a run that has several.
void bench_figure(const char *workload, double us, double units, bench_check written, bench_check read);
/// The resident memory, open descriptors and threads of a process.
typedef struct {
    int64_t bytes, descriptors, threads;
} bench_resources;

/// Must be called before anything is opened; raises the limit of descriptors as far as it goes.
/// Linux only.
bench_resources bench_resources_now(void);
/// Prints how long `count` stores took to open, and what they hold a second later, as a sample.
void bench_idle(int64_t count, bench_resources before);
/// The time in µs on the clock of all samples.
double bench_now(void);

/// Runs `body` with `context` in a thread of its own, which nobody waits for.
void bench_thread(void (*body)(void *context), void *context);
/// Sleeps until that clock shows `time`.
void bench_wait_until(double time);
/// Prints what a system reports about itself: its version, and the settings of its engine.
void bench_describe(const char *key, const char *value);
/// Prints to standard error and ends the process with 1.
_Noreturn void bench_fail(const char *what, const char *why);
/// Prints that this system does not do this workload, and ends the process with 0.
_Noreturn void bench_skip(const char *why);

#endif
