// MMKV from a checkout: W5. It encrypts with AES-CFB-128, here under a key of 256 bits as SQLCipher's.
// It authenticates nothing: its CRC finds accidents only.
//
// There are no transactions. Each put appends to mapped memory, and nothing is synced: the process may
// die, but a power loss may take the newest puts, or with its CRC the whole store.

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "MMKV.h"

#define _Noreturn [[noreturn]]
extern "C" {
#include "workload.h"
}

static MMKV *store;
static std::string folder, name;

/// MMKV's name of a store, and the folder that it is in.
static void split(const char *path) {
    std::string whole = path;
    size_t slash = whole.rfind('/');
    folder = slash == std::string::npos ? "." : whole.substr(0, slash);
    name = slash == std::string::npos ? whole : whole.substr(slash + 1);
}

static void remove_store(const char *path) {
    bench_remove(path);
    unlink((std::string(path) + ".crc").c_str());
}

static void open_store(int64_t count) {
    std::string key(reinterpret_cast<const char *>(bench_key), 32);
    MMKVConfig config;
    config.aes256 = true;
    config.cryptKey = &key;
    // What the entries need. A smaller file is doubled on the way, and written and encrypted anew.
    config.expectedCapacity = static_cast<size_t>(count) * 2 * sizeof(bench_entry);
    store = MMKV::mmkvWithID(name, config);
    if (store == nullptr || !store->isEncryptionEnabled()) bench_fail("mmkv", "did not open");
}

static std::string_view key_of(const bench_entry *entry) {
    return {reinterpret_cast<const char *>(entry->key), sizeof entry->key};
}

static void put_all(const bench_entry *entries, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        mmkv::MMBuffer value(const_cast<uint8_t *>(entries[i].value), sizeof entries[i].value, mmkv::MMBufferNoCopy);
        if (!store->set(value, key_of(entries + i))) bench_fail("mmkv", "put nothing");
    }
}

/// Each buffer owns its bytes. MMKV keeps values of up to 256 bytes decrypted in memory.
static std::vector<mmkv::MMBuffer> get_all(const bench_entry *entries, int64_t count) {
    std::vector<mmkv::MMBuffer> values;
    values.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i++) {
        mmkv::MMBuffer value;
        if (!store->getBytes(key_of(entries + bench_shuffled(i, count)), value)) bench_fail("mmkv", "no such key");
        values.push_back(std::move(value));
    }
    return values;
}

static bench_check sum(const bench_entry *entries, const std::vector<mmkv::MMBuffer> &values) {
    bench_check check = {};
    int64_t count = static_cast<int64_t>(values.size());
    for (int64_t i = 0; i < count; i++) {
        const mmkv::MMBuffer &value = values[static_cast<size_t>(i)];
        bench_check_bytes(&check, entries[bench_shuffled(i, count)].key, sizeof entries->key);
        bench_check_bytes(&check, value.getPtr(), static_cast<int64_t>(value.length()));
        bench_check_end_row(&check);
    }
    return check;
}

/// Neither a key nor a value may be in the file as it is.
static void prove_encrypted(const char *path, const bench_entry *entry) {
    std::string bytes(static_cast<size_t>(bench_file_bytes(path)), '\0');
    FILE *file = fopen(path, "rb");
    if (file == nullptr || fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) bench_fail("mmkv", path);
    fclose(file);
    std::string_view value(reinterpret_cast<const char *>(entry->value), sizeof entry->value);
    if (bytes.empty() || bytes.find(key_of(entry)) != std::string::npos || bytes.find(value) != std::string::npos) {
        bench_fail("mmkv", "left a file that is not encrypted");
    }
}

static void take_put(bench_arguments arguments, const bench_entry *entries, bench_check written) {
    for (int64_t i = 0; i < arguments.repeats; i++) {
        remove_store(arguments.path);
        open_store(arguments.rows);
        bench_start();
        put_all(entries, arguments.rows);
        bench_stop();
        bench_sample(static_cast<double>(arguments.rows), written, sum(entries, get_all(entries, arguments.rows)));
        store->close();
    }
}

static void take_get(bench_arguments arguments, const bench_entry *entries, bench_check written) {
    remove_store(arguments.path);
    open_store(arguments.rows);
    put_all(entries, arguments.rows);
    // It reads all entries into memory when it opens.
    store->close();
    open_store(arguments.rows);
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_start();
        std::vector<mmkv::MMBuffer> values = get_all(entries, arguments.rows);
        bench_stop();
        bench_check read = sum(entries, values);
        bench_start();
        std::vector<mmkv::MMBuffer>().swap(values);
        bench_stop();
        bench_sample(static_cast<double>(arguments.rows), written, read);
    }
    store->close();
}

int main(int count, char **words) {
    bench_arguments arguments = bench_parse(count, words);
    split(arguments.path);
    MMKV::initializeMMKV(folder, MMKVLogWarning);
    bench_entry *entries = bench_entries_make(arguments.rows, 1);
    bench_check written = {};
    for (int64_t i = 0; i < arguments.rows; i++) bench_check_entry(&written, entries + i);
    bench_describe("mmkv_version", MMKV_VERSION);
    if (bench_is(arguments, "W5-put")) {
        take_put(arguments, entries, written);
    } else {
        take_get(arguments, entries, written);
    }
    prove_encrypted(arguments.path, entries);
    free(entries);
}
