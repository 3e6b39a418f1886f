#include "workload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <dirent.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

#if defined(__has_include) && __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

// MARK: Data

static const uint64_t seed = 0x0c0ffe4;

static uint64_t mixed(uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

static void fill(uint8_t *bytes, int64_t count, uint64_t state) {
    for (int64_t i = 0; i < count; i++) {
        if (i % 8 == 0) state = mixed(state);
        bytes[i] = (uint8_t)(state >> (i % 8 * 8));
    }
}

static bench_bytes text(const char *words) {
    bench_bytes text = {strdup(words), (int32_t)strlen(words)};
    if (text.bytes == NULL) bench_fail("memory", "none left");
    return text;
}

static bench_record record(int64_t id, int32_t version) {
    // One name in eight is not ASCII, as in the world.
    static const char *const names[] = {"Ada Lovelace", "Grace Hopper", "Zuse, Konrad", "Hedy Lamarr",
                                        "Emmy Nœther", "Annie Easley", "Radia Perlman", "Alan Turing"};
    static const char *const kinds[] = {"letter", "note", "photograph", "invoice"};
    uint64_t random = mixed(seed ^ (uint64_t)id * 2654435761u ^ (uint64_t)version << 48);
    char buffer[128];
    bench_record record = {.id = id};
    snprintf(buffer, sizeof buffer, "%s %lld", names[random & 7], (long long)id);
    record.name = text(buffer);
    snprintf(buffer, sizeof buffer, "https://example.com/%08x/%lld", (unsigned)(random >> 32), (long long)id);
    record.url = text(buffer);
    record.kind = text(kinds[random >> 3 & 3]);
    record.x = (double)(random >> 20 & 0xffff) + 0.5;
    record.y = (double)(random >> 40) / 3.0 + 0.1;
    record.created = 1.7e9 + (double)(random >> 8 & 0xffffff) / 8.0;
    record.flag = random >> 63;
    if (id % 3 != 0) {
        snprintf(buffer, sizeof buffer, "a note for row %lld, version %d", (long long)id, version);
        record.note = text(buffer);
    }
    uint8_t *data = malloc(64);
    if (data == NULL) bench_fail("memory", "none left");
    fill(data, 64, random);
    record.data = (bench_bytes){(const char *)data, 64};
    return record;
}

bench_record *bench_records_make(int64_t first, int64_t count, int32_t version) {
    bench_record *records = malloc((size_t)count * sizeof *records);
    if (records == NULL) bench_fail("memory", "none left");
    for (int64_t i = 0; i < count; i++) records[i] = record(first + i, version);
    return records;
}

void bench_records_free(bench_record *records, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        free((void *)records[i].name.bytes);
        free((void *)records[i].url.bytes);
        free((void *)records[i].kind.bytes);
        free((void *)records[i].note.bytes);
        free((void *)records[i].data.bytes);
    }
    free(records);
}

bench_entry *bench_entries_make(int64_t count, int32_t version) {
    bench_entry *entries = malloc((size_t)count * sizeof *entries);
    if (entries == NULL) bench_fail("memory", "none left");
    for (int64_t i = 0; i < count; i++) {
        fill(entries[i].key, sizeof entries[i].key, mixed(seed + (uint64_t)i));
        fill(entries[i].value, sizeof entries[i].value, mixed(seed ^ (uint64_t)i << 8 ^ (uint64_t)version << 56));
    }
    return entries;
}

uint8_t *bench_blob_make(int64_t count, int64_t number) {
    uint8_t *blob = malloc((size_t)count);
    if (blob == NULL) bench_fail("memory", "none left");
    fill(blob, count, mixed(seed ^ (uint64_t)number << 32));
    return blob;
}

int64_t bench_shuffled(int64_t i, int64_t count) {
    // A prime that divides no count in use, and is far from every page's row count.
    return (int64_t)((uint64_t)i * 7919 % (uint64_t)count);
}

// MARK: Checks

static void mix(bench_check *check, uint64_t value) { check->row = mixed(check->row ^ value) + 1; }

void bench_check_integer(bench_check *check, int64_t value) { mix(check, (uint64_t)value); }

void bench_check_real(bench_check *check, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    mix(check, bits);
}

void bench_check_bytes(bench_check *check, const void *bytes, int64_t count) {
    const uint8_t *start = bytes;
    uint64_t hash = 0xcbf29ce484222325 ^ (uint64_t)count;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, start + i, 8);
        hash = (hash ^ word) * 0x100000001b3;
        hash ^= hash >> 29;
    }
    for (; i < count; i++) hash = (hash ^ start[i]) * 0x100000001b3;
    mix(check, hash);
}

void bench_check_null(bench_check *check) { mix(check, 0x6e756c6c); }

void bench_check_end_row(bench_check *check) {
    check->sum += mixed(check->row);
    check->row = 0;
}

void bench_check_record(bench_check *check, const bench_record *record) {
    bench_check_integer(check, record->id);
    bench_check_bytes(check, record->name.bytes, record->name.count);
    bench_check_bytes(check, record->url.bytes, record->url.count);
    bench_check_bytes(check, record->kind.bytes, record->kind.count);
    bench_check_real(check, record->x);
    bench_check_real(check, record->y);
    bench_check_real(check, record->created);
    bench_check_integer(check, record->flag);
    if (record->note.bytes == NULL) {
        bench_check_null(check);
    } else {
        bench_check_bytes(check, record->note.bytes, record->note.count);
    }
    bench_check_bytes(check, record->data.bytes, record->data.count);
    bench_check_end_row(check);
}

void bench_check_found(bench_check *check, int64_t asked, const bench_record *record) {
    bench_check_integer(check, asked);
    bench_check_record(check, record);
}

static uint64_t bits_of(double real) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

uint64_t bench_digest(const bench_record *record) {
    return (uint64_t)record->id + (uint64_t)record->flag + bits_of(record->x) + bits_of(record->y) +
           bits_of(record->created) + (uint64_t)record->name.count + (uint64_t)record->url.count +
           (uint64_t)record->kind.count + (uint64_t)record->note.count + (uint64_t)record->data.count;
}

void bench_check_entry(bench_check *check, const bench_entry *entry) {
    bench_check_bytes(check, entry->key, sizeof entry->key);
    bench_check_bytes(check, entry->value, sizeof entry->value);
    bench_check_end_row(check);
}

// MARK: The run

const uint8_t bench_key[48] = {7, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5,
                               2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5};
const uint8_t bench_other_key[48] = {1, 6, 1, 8, 0, 3, 3, 9, 8, 8, 7, 4, 9, 8, 9, 4, 8, 4, 8, 2, 0, 4, 5, 8, 6, 8, 3, 4, 3, 6, 5, 6,
                                     2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5};
const char *const bench_passphrase = "correct horse battery staple";

bench_arguments bench_parse(int count, char **values) {
    if (count != 6) bench_fail("usage", "<system> <workload> <rows> <repeats> <path>");
    bench_arguments arguments = {.system = values[1], .workload = values[2], .path = values[5]};
    arguments.rows = atoll(values[3]);
    arguments.repeats = atoll(values[4]);
    if (arguments.rows < 1 || arguments.repeats < 1) bench_fail("usage", "rows and repeats are at least 1");
    arguments.cache_kib =
        bench_is(arguments, "W2d") ? 2000 : bench_is(arguments, "W5-get-default") ? 0 : 64000;
    static const char *const durable[] = {"W6", "rotate", "fleet", "serve"};
    for (size_t i = 0; i < sizeof durable / sizeof *durable; i++) {
        arguments.full_sync |= strncmp(arguments.workload, durable[i], strlen(durable[i])) == 0;
    }
    return arguments;
}

bool bench_is(bench_arguments arguments, const char *workload) {
    return strcmp(arguments.workload, workload) == 0;
}

void bench_remove(const char *path) {
    static const char *const endings[] = {"", "-wal", "-shm", "-journal", "-lock", ".keyring"};
    char name[4096];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

int64_t bench_file_bytes(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : 0;
}

void bench_copy_damaged(const char *path, const char *copy) {
    enum { page_bytes = 4096 };
    int64_t count = bench_file_bytes(path), place = count / page_bytes / 2 * page_bytes + page_bytes / 2;
    uint8_t *bytes = malloc((size_t)count + 1);
    FILE *from = fopen(path, "rb"), *to = fopen(copy, "wb");
    if (bytes == NULL || from == NULL || to == NULL || place >= count) bench_fail("copy", path);
    if (fread(bytes, 1, (size_t)count, from) != (size_t)count) bench_fail("copy", path);
    bytes[place] ^= 1;
    if (fwrite(bytes, 1, (size_t)count, to) != (size_t)count) bench_fail("copy", copy);
    fclose(from);
    if (fclose(to) != 0) bench_fail("copy", copy);
    free(bytes);
}

#ifdef __linux__
// The number of requests to make something durable. The engines call the C library's functions by
// name, and a function of that name in the executable takes precedence.
static atomic_llong sync_count;

static int count_sync(long number, int file) {
    atomic_fetch_add(&sync_count, 1);
    return (int)syscall(number, file);
}

int fsync(int file) { return count_sync(SYS_fsync, file); }
int fdatasync(int file) { return count_sync(SYS_fdatasync, file); }

static int64_t syncs_now(void) { return atomic_load(&sync_count); }
#else
static int64_t syncs_now(void) { return 0; }
#endif

static double elapsed;
static double started;
static int64_t syncs, syncs_started;
static bool is_warm_up;

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

typedef struct {
    void (*body)(void *);
    void *context;
} thread_work;

static void *run_thread(void *argument) {
    thread_work work = *(thread_work *)argument;
    free(argument);
    work.body(work.context);
    return NULL;
}

void bench_thread(void (*body)(void *context), void *context) {
    pthread_t thread;
    thread_work *work = malloc(sizeof *work);
    if (work == NULL) bench_fail("thread", "no memory");
    *work = (thread_work){body, context};
    if (pthread_create(&thread, NULL, run_thread, work) != 0) bench_fail("thread", "none left");
    pthread_detach(thread);
}

void bench_wait_until(double time) {
    double left = time - bench_now();
    if (left > 0) usleep((useconds_t)left);
}

void bench_warm(bool is_warming) { is_warm_up = is_warming; }

void bench_start(void) {
    if (is_warm_up) return;
    CALLGRIND_START_INSTRUMENTATION;
    syncs_started = syncs_now();
    started = bench_now();
}

void bench_stop(void) {
    double now = bench_now();
    if (is_warm_up) return;
    CALLGRIND_STOP_INSTRUMENTATION;
    elapsed += now - started;
    syncs += syncs_now() - syncs_started;
}

static void compare(bench_check written, bench_check read) {
    if (written.sum != read.sum) bench_fail("check", "what was read is not what was written");
}

void bench_sample(double units, bench_check written, bench_check read) {
    compare(written, read);
    if (is_warm_up) return;
    printf("{\"us\": %.3f, \"rows\": %.6g, \"check\": \"%016llx\", \"syncs\": %lld}\n", elapsed, units,
           (unsigned long long)read.sum, (long long)syncs);
    fflush(stdout);
    elapsed = 0, syncs = 0;
}

void bench_figure(const char *workload, double us, double units, bench_check written, bench_check read) {
    compare(written, read);
    printf("{\"workload\": \"%s\", \"us\": %.3f, \"rows\": %.6g, \"check\": \"%016llx\"}\n", workload, us, units,
           (unsigned long long)read.sum);
    fflush(stdout);
}

static int order(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

void bench_latencies(const char *workload, double *latencies, int64_t count, bench_check written, bench_check read) {
    static const int64_t per_mille[] = {500, 900, 990, 999, 1000};
    compare(written, read);
    if (count == 0) bench_fail(workload, "no call was made");
    qsort(latencies, (size_t)count, sizeof *latencies, order);
    printf("{\"workload\": \"%s\", \"us\": %.3f, \"rows\": %lld, \"check\": \"%016llx\", \"percentiles_us\": {",
           workload, latencies[(count - 1) / 2], (long long)count, (unsigned long long)read.sum);
    for (size_t i = 0; i < sizeof per_mille / sizeof *per_mille; i++) {
        // The shortest latency that this many of the calls did not exceed.
        int64_t rank = (per_mille[i] * count + 999) / 1000;
        printf("%s\"%g\": %.3f", i == 0 ? "" : ", ", (double)per_mille[i] / 10, latencies[rank - 1]);
    }
    printf("}}\n");
    fflush(stdout);
}

#ifdef __linux__
static int64_t entries_in(const char *path) {
    int64_t count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL) bench_fail(path, "cannot be read");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/// In bytes.
static int64_t resident_memory(void) {
    long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lld %lld", &pages, &resident) != 2) bench_fail("memory", "cannot be read");
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static bench_resources resources(void) {
    return (bench_resources){resident_memory(), entries_in("/proc/self/fd"), entries_in("/proc/self/task")};
}

bench_resources bench_resources_now(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return resources();
}

void bench_idle(int64_t count, bench_resources before) {
    // Threads that end within a second do not belong to the idle stores.
    sleep(1);
    bench_resources now = resources();
    printf("{\"us\": %.3f, \"rows\": %lld, \"check\": \"%016llx\", \"idle\": {\"bytes\": %lld, "
           "\"descriptors\": %lld, \"threads\": %lld}}\n",
           elapsed, (long long)count, (unsigned long long)count, (long long)(now.bytes - before.bytes),
           (long long)(now.descriptors - before.descriptors), (long long)(now.threads - before.threads));
    fflush(stdout);
    elapsed = 0, syncs = 0;
}
#else
bench_resources bench_resources_now(void) { bench_skip("descriptors are counted on Linux only"); }
void bench_idle(int64_t count, bench_resources before) { (void)count, (void)before; }
#endif

void bench_describe(const char *key, const char *value) { printf("{\"%s\": \"%s\"}\n", key, value); }

void bench_fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void bench_skip(const char *why) {
    printf("{\"skipped\": \"%s\"}\n", why);
    exit(0);
}
