// RocksDB, not encrypted: W5. One write batch, no fsync, a block cache of 64 MB and Bloom filters.

// The driver defines ROCKSDB_VERSION, because the C API does not report it.

#include <rocksdb/c.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

typedef struct {
    char *bytes;
    size_t count;
} value;

static rocksdb_t *store;
static rocksdb_options_t *options;

static void must(char *error) {
    if (error != NULL) bench_fail("rocksdb", error);
}

static void open_store(const char *path) {
    char *error = NULL;
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(64000 << 10));
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    store = rocksdb_open(options, path, &error);
    must(error);
}

static void remove_store(const char *path) {
    char *error = NULL;
    rocksdb_options_t *none = rocksdb_options_create();
    rocksdb_destroy_db(none, path, &error);
    rocksdb_options_destroy(none);
}

static void put_all(const bench_entry *entries, int64_t count) {
    char *error = NULL;
    rocksdb_writeoptions_t *how = rocksdb_writeoptions_create();
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    for (int64_t i = 0; i < count; i++) {
        rocksdb_writebatch_put(batch, (const char *)entries[i].key, sizeof entries[i].key,
                               (const char *)entries[i].value, sizeof entries[i].value);
    }
    rocksdb_write(store, how, batch, &error);
    must(error);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(how);
}

/// Copies each value, as all systems do. rocksdb_get would copy it into a std::string first.
static value *get_all(const bench_entry *entries, int64_t count) {
    value *values = malloc((size_t)count * sizeof *values);
    const rocksdb_snapshot_t *snapshot = rocksdb_create_snapshot(store);
    rocksdb_readoptions_t *how = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(how, snapshot);
    for (int64_t i = 0; i < count; i++) {
        char *error = NULL;
        const bench_entry *entry = entries + bench_shuffled(i, count);
        rocksdb_pinnableslice_t *found =
            rocksdb_get_pinned(store, how, (const char *)entry->key, sizeof entry->key, &error);
        must(error);
        const char *bytes = found == NULL ? NULL : rocksdb_pinnableslice_value(found, &values[i].count);
        if (bytes == NULL) bench_fail("rocksdb", "no such key");
        values[i].bytes = malloc(values[i].count > 0 ? values[i].count : 1);
        if (values[i].bytes == NULL) bench_fail("memory", "none left");
        memcpy(values[i].bytes, bytes, values[i].count);
        rocksdb_pinnableslice_destroy(found);
    }
    rocksdb_readoptions_destroy(how);
    rocksdb_release_snapshot(store, snapshot);
    return values;
}

static void flush(void) {
    char *error = NULL;
    rocksdb_flushoptions_t *how = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(how, 1);
    rocksdb_flush(store, how, &error);
    must(error);
    rocksdb_flushoptions_destroy(how);
}

int main(int count, char **words) {
    bench_arguments arguments = bench_parse(count, words);
    bench_entry *entries = bench_entries_make(arguments.rows, 1);
    bench_check written = {0};
    for (int64_t i = 0; i < arguments.rows; i++) bench_check_entry(&written, entries + i);
    bool is_put = bench_is(arguments, "W5-put");
    bench_describe("rocksdb_version", ROCKSDB_VERSION);
    for (int64_t i = is_put; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        if (is_put || i == 0) {
            remove_store(arguments.path);
            open_store(arguments.path);
            if (is_put) bench_start();
            put_all(entries, arguments.rows);
            if (is_put) bench_stop();
            if (!is_put) {
                // Until then all values are in the memtable, from which no other system reads.
                flush();
                rocksdb_close(store);
                open_store(arguments.path);
            }
        }
        if (!is_put) bench_start();
        value *values = get_all(entries, arguments.rows);
        if (!is_put) bench_stop();
        bench_check read = {0};
        for (int64_t j = 0; j < arguments.rows; j++) {
            bench_check_bytes(&read, entries[bench_shuffled(j, arguments.rows)].key, sizeof entries->key);
            bench_check_bytes(&read, values[j].bytes, (int64_t)values[j].count);
            bench_check_end_row(&read);
        }
        if (!is_put) bench_start();
        for (int64_t j = 0; j < arguments.rows; j++) free(values[j].bytes);
        free(values);
        if (!is_put) bench_stop();
        bench_sample((double)arguments.rows, written, read);
        if (is_put) rocksdb_close(store);
    }
    free(entries);
}
