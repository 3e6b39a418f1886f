#include <stdlib.h>
#include <string.h>

#include "floor.h"

// attach: one value of `rows` MB, with its SHA-256, in pieces of 256 KiB; units are MB.

#ifdef FLOOR_IS_PLAIN

void floor_attachments(bench_arguments arguments) { bench_fail("workload", arguments.workload); }

#else

#include <openssl/evp.h>

enum { blob_bytes = 1000000, piece_bytes = 256 << 10, digest_bytes = 32 };

static EVP_MD_CTX *hash;

static void hash_begin(void) {
    if (EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) bench_fail("sha256", "init");
}

static void hash_add(const void *bytes, int count) {
    if (EVP_DigestUpdate(hash, bytes, (size_t)count) != 1) bench_fail("sha256", "update");
}

static void hash_end(uint8_t digest[digest_bytes]) {
    if (EVP_DigestFinal_ex(hash, digest, NULL) != 1) bench_fail("sha256", "final");
}

static sqlite3_blob *open_blob(bool is_writable) {
    sqlite3_blob *blob;
    if (sqlite3_blob_open(db, "main", "attachment", "bytes", 1, is_writable, &blob) != SQLITE_OK) floor_fail("blob");
    return blob;
}

/// Writes the value: `zeroblob`, then piece by piece.
static void put(const uint8_t *bytes, int count) {
    uint8_t digest[digest_bytes];
    sqlite3_stmt *insert = floor_prepare("INSERT INTO attachment VALUES (1, zeroblob(?1), zeroblob(?2))");
    floor_begin();
    sqlite3_bind_int(insert, 1, digest_bytes);
    sqlite3_bind_int(insert, 2, count);
    floor_end(insert);
    sqlite3_blob *blob = open_blob(true);
    hash_begin();
    for (int start = 0; start < count; start += piece_bytes) {
        int size = count - start < piece_bytes ? count - start : piece_bytes;
        hash_add(bytes + start, size);
        if (sqlite3_blob_write(blob, bytes + start, size, start) != SQLITE_OK) floor_fail("write");
    }
    hash_end(digest);
    sqlite3_blob_close(blob);
    if (sqlite3_blob_open(db, "main", "attachment", "sha256", 1, 1, &blob) != SQLITE_OK) floor_fail("blob");
    if (sqlite3_blob_write(blob, digest, digest_bytes, 0) != SQLITE_OK) floor_fail("write");
    sqlite3_blob_close(blob);
    floor_commit();
    sqlite3_finalize(insert);
}

/// Reads the value piece by piece, and compares the digest.
static void get(uint8_t digest[digest_bytes]) {
    uint8_t *piece = malloc(piece_bytes);
    if (piece == NULL) bench_fail("memory", "none left");
    floor_begin();
    sqlite3_blob *blob = open_blob(false);
    int count = sqlite3_blob_bytes(blob);
    hash_begin();
    for (int start = 0; start < count; start += piece_bytes) {
        int size = count - start < piece_bytes ? count - start : piece_bytes;
        if (sqlite3_blob_read(blob, piece, size, start) != SQLITE_OK) floor_fail("read");
        hash_add(piece, size);
    }
    hash_end(digest);
    sqlite3_blob_close(blob);
    uint8_t recorded[digest_bytes];
    if (sqlite3_blob_open(db, "main", "attachment", "sha256", 1, 0, &blob) != SQLITE_OK) floor_fail("blob");
    if (sqlite3_blob_read(blob, recorded, digest_bytes, 0) != SQLITE_OK) floor_fail("read");
    sqlite3_blob_close(blob);
    floor_commit();
    if (memcmp(recorded, digest, digest_bytes) != 0) bench_fail("sha256", "other bytes");
    free(piece);
}

static bench_check check_of(const uint8_t digest[digest_bytes]) {
    bench_check check = {0};
    bench_check_bytes(&check, digest, 0); // no key
    bench_check_bytes(&check, digest, digest_bytes);
    bench_check_end_row(&check);
    return check;
}

void floor_attachments(bench_arguments arguments) {
    bool is_in = bench_is(arguments, "attach-in");
    int count = (int)arguments.rows * blob_bytes;
    uint8_t *bytes = bench_blob_make(count, 1);
    uint8_t expected[digest_bytes], digest[digest_bytes];
    hash = EVP_MD_CTX_new();
    hash_begin();
    hash_add(bytes, count);
    hash_end(expected);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        bench_remove(arguments.path);
        floor_open(arguments, true);
        floor_run("CREATE TABLE attachment(id INTEGER PRIMARY KEY, sha256 BLOB, bytes BLOB)");
        if (is_in) bench_start();
        put(bytes, count);
        if (is_in) bench_stop();
        // The connection that wrote still has pages; every system reads them from the file.
        floor_close();
        floor_open(arguments, false);
        if (!is_in) bench_start();
        get(digest);
        if (!is_in) bench_stop();
        bench_sample((double)count / 1e6, check_of(expected), check_of(digest));
        floor_close();
    }
    EVP_MD_CTX_free(hash);
    free(bytes);
}

#endif
