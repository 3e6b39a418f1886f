// LMDB, not encrypted: W5. One write transaction; MDB_APPEND is not possible because keys are
// random. MDB_NOSYNC is the equivalent of synchronous=NORMAL: a power loss may roll back a commit.

#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

static MDB_env *environment;
static MDB_dbi table;

static void must(int code) {
    if (code != MDB_SUCCESS) bench_fail("lmdb", mdb_strerror(code));
}

static MDB_txn *begin(unsigned flags) {
    MDB_txn *transaction;
    must(mdb_txn_begin(environment, NULL, flags, &transaction));
    return transaction;
}

static void open_store(const char *path) {
    must(mdb_env_create(&environment));
    must(mdb_env_set_mapsize(environment, (size_t)1 << 30));
    must(mdb_env_open(environment, path, MDB_NOSUBDIR | MDB_NOSYNC, 0600));
    MDB_txn *transaction = begin(0);
    must(mdb_dbi_open(transaction, NULL, 0, &table));
    must(mdb_txn_commit(transaction));
}

static void put_all(const bench_entry *entries, int64_t count) {
    MDB_txn *transaction = begin(0);
    for (int64_t i = 0; i < count; i++) {
        MDB_val key = {sizeof entries[i].key, (void *)entries[i].key};
        MDB_val value = {sizeof entries[i].value, (void *)entries[i].value};
        must(mdb_put(transaction, table, &key, &value, 0));
    }
    must(mdb_txn_commit(transaction));
}

/// Copies each value, as all systems do: LMDB's own pointer ends with the transaction.
static MDB_val *get_all(const bench_entry *entries, int64_t count) {
    MDB_val *values = malloc((size_t)count * sizeof *values);
    MDB_txn *transaction = begin(MDB_RDONLY);
    for (int64_t i = 0; i < count; i++) {
        const bench_entry *entry = entries + bench_shuffled(i, count);
        MDB_val key = {sizeof entry->key, (void *)entry->key}, found;
        must(mdb_get(transaction, table, &key, &found));
        values[i].mv_size = found.mv_size;
        values[i].mv_data = malloc(found.mv_size);
        memcpy(values[i].mv_data, found.mv_data, found.mv_size);
    }
    mdb_txn_abort(transaction);
    return values;
}

static bench_check sum(const bench_entry *entries, const MDB_val *values, int64_t count) {
    bench_check check = {0};
    for (int64_t i = 0; i < count; i++) {
        bench_check_bytes(&check, entries[bench_shuffled(i, count)].key, sizeof entries->key);
        bench_check_bytes(&check, values[i].mv_data, (int64_t)values[i].mv_size);
        bench_check_end_row(&check);
    }
    return check;
}

static void release(MDB_val *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) free(values[i].mv_data);
    free(values);
}

int main(int count, char **words) {
    bench_arguments arguments = bench_parse(count, words);
    bench_entry *entries = bench_entries_make(arguments.rows, 1);
    bench_check written = {0};
    for (int64_t i = 0; i < arguments.rows; i++) bench_check_entry(&written, entries + i);
    bool is_put = bench_is(arguments, "W5-put");
    bench_describe("lmdb_version", mdb_version(NULL, NULL, NULL));
    if (!is_put) {
        bench_remove(arguments.path);
        open_store(arguments.path);
        put_all(entries, arguments.rows);
    }
    for (int64_t i = is_put; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        if (is_put) {
            bench_remove(arguments.path);
            open_store(arguments.path);
            bench_start();
            put_all(entries, arguments.rows);
            bench_stop();
        }
        if (!is_put) bench_start();
        MDB_val *values = get_all(entries, arguments.rows);
        if (!is_put) bench_stop();
        bench_check read = sum(entries, values, arguments.rows);
        if (!is_put) bench_start();
        release(values, arguments.rows);
        if (!is_put) bench_stop();
        bench_sample((double)arguments.rows, written, read);
        if (is_put) mdb_env_close(environment);
    }
    free(entries);
}
