// Coffer's C interface: SQLCipher's header, and declarations that Swift cannot express.
//
// One source serves SQLCipher 3.4.1 (SQLite 3.15.2) and 4.x. Features that the older engine lacks
// are guarded by SQLITE_VERSION_NUMBER, so that no Swift file names a symbol that may not link.

#ifndef COFFER_CSQLCIPHER_SHIM_H
#define COFFER_CSQLCIPHER_SHIM_H

// The pkg-config file does not define it, and without it the header hides sqlite3_key.
#ifndef SQLITE_HAS_CODEC
#define SQLITE_HAS_CODEC 1
#endif

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

/// SQLITE_TRANSIENT, which tells the engine to copy the bytes. It is a cast of -1, which Swift does
/// not import.
static inline sqlite3_destructor_type coffer_transient(void) {
    return SQLITE_TRANSIENT;
}

/// Whether two texts of the same length have the same bytes. Defined here, because `memcmp` is in a
/// different module on each platform.
static inline bool coffer_is_equal(const void *left, const void *right, size_t count) {
    return count == 0 || memcmp(left, right, count) == 0;
}

/// The length of a text. Defined here, because `strlen` is in a different module on each platform.
static inline size_t coffer_length(const char *text) {
    return strlen(text);
}

/// How many pages the connection has read into its cache, from the main file or the WAL.
/// See <https://www.sqlite.org/c3ref/c_dbstatus_options.html>.
static inline int32_t coffer_cache_miss_count(sqlite3 *db) {
    int count = 0, highest = 0;
    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_MISS, &count, &highest, 0);
    return count;
}

/// How many pages the connection has found in its cache.
static inline int32_t coffer_cache_hit_count(sqlite3 *db) {
    int count = 0, highest = 0;
    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_HIT, &count, &highest, 0);
    return count;
}

/// Compiles a statement that will be kept, so that the engine avoids its lookaside memory.
static inline int coffer_prepare_persistent(sqlite3 *db, const char *sql, int byte_count,
                                            sqlite3_stmt **statement, const char **tail) {
#if SQLITE_VERSION_NUMBER >= 3020000
    return sqlite3_prepare_v3(db, sql, byte_count, SQLITE_PREPARE_PERSISTENT, statement, tail);
#else
    return sqlite3_prepare_v2(db, sql, byte_count, statement, tail);
#endif
}

/// The offset in bytes of the last error in the SQL text; -1 if the engine does not report it. The
/// older engine never does.
static inline int coffer_error_offset(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3038000
    return sqlite3_error_offset(db);
#else
    return -1;
#endif
}

/// Writes a real in the form that the engine itself uses when it reads a number as text.
static inline void coffer_real_text(double value, char *buffer, int byte_count) {
    sqlite3_snprintf(byte_count, buffer, "%!.15g", value);
}

/// Whether the statement that runs is interrupted. Must be called by a function of that statement:
/// while none runs, an interrupt is forgotten. The older engine has no call for it, but "compiles"
/// even a space only if nothing is interrupted.
static inline bool coffer_is_interrupted(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3041000
    return sqlite3_is_interrupted(db) != 0;
#else
    sqlite3_stmt *none = NULL;
    return sqlite3_prepare_v2(db, " ", -1, &none, NULL) == SQLITE_INTERRUPT;
#endif
}

/// The number of rows that the last statement changed; the older engine counts in 32 bits.
static inline int64_t coffer_changes(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3037000
    return sqlite3_changes64(db);
#else
    return sqlite3_changes(db);
#endif
}

/// The number of rows changed since the connection opened; the older engine counts in 32 bits.
static inline int64_t coffer_total_changes(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3037000
    return sqlite3_total_changes64(db);
#else
    return sqlite3_total_changes(db);
#endif
}

/// Registers a function that also works over a window of rows. `box` is released with the function,
/// or at once if the engine refuses it. SQLITE_NOTFOUND if the engine has no window functions.
static inline int coffer_create_window_function(
    sqlite3 *db, const char *name, int argument_count, int flags, void *box,
    void (*step)(sqlite3_context *, int, sqlite3_value **), void (*final)(sqlite3_context *),
    void (*value)(sqlite3_context *), void (*inverse)(sqlite3_context *, int, sqlite3_value **),
    void (*destroy)(void *)) {
#if SQLITE_VERSION_NUMBER >= 3025000
    return sqlite3_create_window_function(db, name, argument_count, flags, box, step, final, value,
                                          inverse, destroy);
#else
    destroy(box);
    return SQLITE_NOTFOUND;
#endif
}

/// Whether the engine has window functions.
static inline bool coffer_has_window_functions(void) {
    return SQLITE_VERSION_NUMBER >= 3025000;
}

/// Wraps sqlite3_db_config, which is variadic. SQLITE_ERROR if the engine does not know the option.
static inline int coffer_set_option(sqlite3 *db, int option, int enabled) {
    return sqlite3_db_config(db, option, enabled, (int *)0);
}

/// Whether the engine may map the main file into memory. Also true if the file's VFS does not tell.
/// See <https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html#sqlitefcntlmmapsize>.
static inline bool coffer_may_map_main_file(sqlite3 *db) {
    // A negative limit changes nothing, and is replaced by the present one.
    sqlite3_int64 limit = -1;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_MMAP_SIZE, &limit);
    return code != SQLITE_OK || limit != 0;
}

/// Wraps sqlite3_config, which is variadic. Has no effect once the engine has been used.
static inline int coffer_stop_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/// Lets a connection take memory for each page when it needs it. By default it begins with memory
/// for many pages. Has no effect once the engine has been used.
static inline int coffer_take_page_memory_singly(void) {
    return sqlite3_config(SQLITE_CONFIG_PAGECACHE, (void *)0, 0, 0);
}

/// Gives memory that nobody has allocated back to the system, where its allocator keeps it.
/// See malloc_trim(3).
static inline void coffer_release_free_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/// SQLITE_IOERR_SHORT_READ, an expression that Swift does not import.
static const int coffer_ioerr_short_read = SQLITE_IOERR_SHORT_READ;

/// SQLITE_READONLY_DBMOVED, also an expression: the path leads to another file now.
static const int coffer_readonly_moved = SQLITE_READONLY_DBMOVED;

/// SQLITE_CORRUPT_VTAB, also an expression that Swift does not import.
static const int coffer_corrupt_virtual_table = SQLITE_CORRUPT_VTAB;

/// Options of sqlite3_db_config that the older header does not name.
enum {
    coffer_option_foreign_keys = 1002,
    coffer_option_fts3_tokenizer = 1004,
    coffer_option_load_extension = 1005,
    coffer_option_defensive = 1010,
    coffer_option_trusted_schema = 1017,
};

/// The interface of FTS3 tokenizers, which sqlite3.h does not declare:
/// <https://www.sqlite.org/fts3.html#custom_application_defined_tokenizers>. Each struct begins
/// with the fields of the engine's struct. `context` follows where Coffer needs its own state.
typedef struct coffer_tokenizer_module coffer_tokenizer_module;
typedef struct coffer_tokenizer coffer_tokenizer;
typedef struct coffer_tokenizer_cursor coffer_tokenizer_cursor;

struct coffer_tokenizer_module {
    int version;
    int (*create)(int count, const char *const *arguments, coffer_tokenizer **tokenizer);
    int (*destroy)(coffer_tokenizer *tokenizer);
    int (*open)(coffer_tokenizer *tokenizer, const char *text, int byte_count,
                coffer_tokenizer_cursor **cursor);
    int (*close)(coffer_tokenizer_cursor *cursor);
    int (*next)(coffer_tokenizer_cursor *cursor, const char **token, int *byte_count, int *start,
                int *end, int *position);
    int (*language)(coffer_tokenizer_cursor *cursor, int language);
    void *context;
};

struct coffer_tokenizer {
    const coffer_tokenizer_module *module;
    void *context;
};

struct coffer_tokenizer_cursor {
    coffer_tokenizer *tokenizer;
    void *context;
};

/// The function that a tokenizer calls for each token.
typedef int (*coffer_fts5_token)(void *context, int flags, const char *token, int byte_count,
                                 int start, int end);

/// Gives FTS5 a tokenizer. SQLITE_NOTFOUND if the engine has no FTS5, without calling `destroy`.
static inline int coffer_fts5_create_tokenizer(
    sqlite3 *db, const char *name, void *context,
    int (*create)(void *context, const char **arguments, int count, void **tokenizer),
    void (*destroy_tokenizer)(void *tokenizer),
    int (*tokenize)(void *tokenizer, void *context, int flags, const char *text, int byte_count,
                    coffer_fts5_token token),
    void (*destroy)(void *context)) {
#if SQLITE_VERSION_NUMBER >= 3020000
    // https://www.sqlite.org/fts5.html#extending_fts5
    fts5_api *api = 0;
    sqlite3_stmt *statement = 0;
    if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &statement, 0) != SQLITE_OK) {
        return SQLITE_NOTFOUND;
    }
    sqlite3_bind_pointer(statement, 1, (void *)&api, "fts5_api_ptr", 0);
    sqlite3_step(statement);
    int code = sqlite3_finalize(statement);
    if (code != SQLITE_OK) return code;
    if (api == 0) return SQLITE_NOTFOUND;
    fts5_tokenizer tokenizer = {
        (int (*)(void *, const char **, int, Fts5Tokenizer **))create,
        (void (*)(Fts5Tokenizer *))destroy_tokenizer,
        (int (*)(Fts5Tokenizer *, void *, int, const char *, int, coffer_fts5_token))tokenize,
    };
    return api->xCreateTokenizer(api, name, context, &tokenizer, destroy);
#else
    return SQLITE_NOTFOUND;
#endif
}

/// The engine's own file object of the main file. SQLITE_MISUSE if it has no file open.
static inline int coffer_main_file(sqlite3 *db, sqlite3_file **file) {
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, file);
    if (code != SQLITE_OK) return code;
    return *file == 0 || (*file)->pMethods == 0 ? SQLITE_MISUSE : SQLITE_OK;
}

/// Reads raw, still encrypted bytes through the engine's own descriptor of the main file.
///
/// A second descriptor would drop the process's POSIX locks when it is closed:
/// https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
static inline int coffer_read_raw(sqlite3 *db, void *buffer, int byte_count, int64_t offset) {
    sqlite3_file *file = 0;
    int code = coffer_main_file(db, &file);
    if (code != SQLITE_OK) return code;
    return file->pMethods->xRead(file, buffer, byte_count, offset);
}

/// Byte count of the main file through the engine's own descriptor.
static inline int coffer_raw_byte_count(sqlite3 *db, int64_t *byte_count) {
    sqlite3_file *file = 0;
    int code = coffer_main_file(db, &file);
    if (code != SQLITE_OK) return code;
    sqlite3_int64 size = 0;
    code = file->pMethods->xFileSize(file, &size);
    *byte_count = size;
    return code;
}

/// Takes the engine's own lock on the main file: SQLITE_LOCK_SHARED, then SQLITE_LOCK_EXCLUSIVE.
/// SQLITE_BUSY if another connection has a lock that excludes it. Closing the connection gives it
/// back; the connection itself must not read through SQL meanwhile.
static inline int coffer_lock_main_file(sqlite3 *db, int level) {
    sqlite3_file *file = 0;
    int code = coffer_main_file(db, &file);
    if (code != SQLITE_OK) return code;
    return file->pMethods->xLock(file, level);
}

/// Lowers a lock that `coffer_lock_main_file` took, to SQLITE_LOCK_SHARED. A lower lock stays.
///
/// Needed also after SQLITE_BUSY for the exclusive lock: a pending lock is then left. It keeps every
/// new connection out, and the pager does not know of it:
/// https://www.sqlite.org/lockingv3.html#pending_lock
static inline int coffer_unlock_main_file(sqlite3 *db, int level) {
    sqlite3_file *file = 0;
    int code = coffer_main_file(db, &file);
    if (code != SQLITE_OK) return code;
    return file->pMethods->xUnlock(file, level);
}

/// Whether the main file's path no longer leads to the file that the connection has open. The engine
/// asks `stat`; a VFS that does not know the question says no.
/// See <https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html#sqlitefcntlhasmoved>.
static inline bool coffer_has_moved(sqlite3 *db) {
    int has_moved = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    return code == SQLITE_OK && has_moved != 0;
}

/// Syncs the main file to the disk.
static inline int coffer_sync_main_file(sqlite3 *db) {
    sqlite3_file *file = 0;
    int code = coffer_main_file(db, &file);
    if (code != SQLITE_OK) return code;
    return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

/// Reads raw bytes of the WAL through the engine's own descriptor. Without WAL it reads an open
/// rollback journal. SQLITE_NOTFOUND if neither is open.
static inline int coffer_read_wal(sqlite3 *db, void *buffer, int byte_count, int64_t offset) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (code != SQLITE_OK) return code;
    if (file == 0 || file->pMethods == 0) return SQLITE_NOTFOUND;
    return file->pMethods->xRead(file, buffer, byte_count, offset);
}

/// Byte count of the WAL, or without WAL of an open rollback journal. SQLITE_NOTFOUND if neither is
/// open.
static inline int coffer_wal_byte_count(sqlite3 *db, int64_t *byte_count) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (code != SQLITE_OK) return code;
    if (file == 0 || file->pMethods == 0) return SQLITE_NOTFOUND;
    sqlite3_int64 size = 0;
    code = file->pMethods->xFileSize(file, &size);
    *byte_count = size;
    return code;
}

/// Syncs the WAL to the disk. SQLITE_NOTFOUND if none is open.
static inline int coffer_sync_wal(sqlite3 *db) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (code != SQLITE_OK) return code;
    if (file == 0 || file->pMethods == 0) return SQLITE_NOTFOUND;
    return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

/// Whether the open transaction has a rollback journal for a database. It has none in WAL mode and
/// before it writes. In journal modes that keep the file, having the write lock counts as writing.
static inline int coffer_has_rollback_journal(sqlite3 *db, const char *schema) {
    int lock = SQLITE_LOCK_NONE;
    int code = sqlite3_file_control(db, schema, SQLITE_FCNTL_LOCKSTATE, &lock);
    if (code == SQLITE_OK && lock < SQLITE_LOCK_RESERVED) return 0;
    sqlite3_file *file = 0;
    code = sqlite3_file_control(db, schema, SQLITE_FCNTL_JOURNAL_POINTER, &file);
    return code == SQLITE_OK && file != 0 && file->pMethods != 0;
}

/// Maps the beginning of the WAL index, which the engine keeps in shared memory. SQLITE_NOTFOUND
/// without WAL.
static inline int coffer_map_wal_index(sqlite3 *db, sqlite3_file **file, void volatile **region) {
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, file);
    if (code != SQLITE_OK) return code;
    const sqlite3_io_methods *methods = *file == 0 ? 0 : (*file)->pMethods;
    if (methods == 0 || methods->iVersion < 2) return SQLITE_NOTFOUND;
    code = methods->xShmMap(*file, 0, 32768, 0, region);
    if (code != SQLITE_OK) return code;
    return *region == 0 ? SQLITE_NOTFOUND : SQLITE_OK;
}

/// Copies both headers of the WAL index, 48 bytes each. A writer changes the second before the
/// first. See https://www.sqlite.org/walformat.html#the_wal_index_header. SQLITE_NOTFOUND without
/// WAL.
static inline int coffer_read_wal_index(sqlite3 *db, void *headers) {
    sqlite3_file *file = 0;
    void volatile *region = 0;
    int code = coffer_map_wal_index(db, &file, &region);
    if (code != SQLITE_OK) return code;
    memcpy(headers, (const void *)region, 48);
    file->pMethods->xShmBarrier(file);
    memcpy((char *)headers + 48, (const char *)region + 48, 48);
    return SQLITE_OK;
}

/// The first header of a WAL index, 48 bytes: "the iChange counter is incremented with each
/// transaction" (https://www.sqlite.org/walformat.html#the_wal_index_header).
typedef struct {
    uint64_t words[6];
} coffer_wal_index_header;

/// Copies the header from the shared memory. If a commit writes it meanwhile, the copy may be partly
/// old.
static inline coffer_wal_index_header coffer_wal_index_copy(const void *region) {
    const uint64_t *words = (const uint64_t *)region;
    coffer_wal_index_header header;
    for (int i = 0; i < 6; i++) header.words[i] = __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
    return header;
}

/// Whether the header in the shared memory is the one that was copied.
static inline bool coffer_wal_index_is(const void *region, const coffer_wal_index_header *header) {
    const uint64_t *words = (const uint64_t *)region;
    uint64_t difference = 0;
    for (int i = 0; i < 6; i++) {
        difference |= __atomic_load_n(words + i, __ATOMIC_ACQUIRE) ^ header->words[i];
    }
    return difference == 0;
}

/// "96: nBackfill: Number of WAL frames that have already been backfilled into the database by
/// prior checkpoints": https://www.sqlite.org/walformat.html#the_wal_index_header.
/// SQLITE_NOTFOUND without WAL.
static inline int coffer_read_moved_frame_count(sqlite3 *db, uint32_t *count) {
    sqlite3_file *file = 0;
    void volatile *region = 0;
    int code = coffer_map_wal_index(db, &file, &region);
    if (code != SQLITE_OK) return code;
    *count = ((const uint32_t volatile *)region)[24];
    return SQLITE_OK;
}

/// Forbids core dumps of this process. On Linux it also forbids the same user to trace the process
/// or read its memory. Returns 0 if everything took effect.
static inline int coffer_forbid_dumps(void) {
    struct rlimit none = {0, 0};
    int failed = setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
    failed |= prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
    return failed;
}

/// The soft limit of core dumps in bytes; -1 without a limit, -2 if it is unknown.
static inline int64_t coffer_core_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return -2;
    return limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur;
}

/// The soft limit of one file that this process writes, in bytes; values as for coffer_core_limit.
static inline int64_t coffer_file_size_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return -2;
    return limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur;
}

/// The soft limit of locked memory in bytes; values as for coffer_core_limit.
static inline int64_t coffer_lock_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return -2;
    return limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur;
}

/// Opens a file in a folder for its owner only. The file has no name, never gets one, and is
/// deleted with its descriptor. -1 if the system or the file system does not support such files.
static inline int coffer_open_scratch(const char *folder) {
#if defined(O_TMPFILE)
    return open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
#elif defined(__O_TMPFILE)
    return open(folder, __O_TMPFILE | O_DIRECTORY | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
#else
    (void)folder;
    errno = ENOSYS;
    return -1;
#endif
}

/// Whether a user belongs to a group, as far as the system knows both.
static inline bool coffer_is_member(uid_t user, gid_t group) {
    struct passwd entry, *found = 0;
    char text[4096];
    if (getpwuid_r(user, &entry, text, sizeof text, &found) != 0 || found == 0) return false;
#ifdef __APPLE__
    int groups[512], count = 512;
    getgrouplist(found->pw_name, (int)found->pw_gid, groups, &count);
#else
    gid_t groups[512];
    int count = 512;
    getgrouplist(found->pw_name, found->pw_gid, groups, &count);
#endif
    for (int i = 0; i < count && i < 512; i++)
        if ((gid_t)groups[i] == group) return true;
    return false;
}

/// Copies the name of a user, with its NUL; false if the user has no name or it does not fit.
static inline bool coffer_user_name(uid_t user, char *name, size_t size) {
    struct passwd entry, *found = 0;
    char text[4096];
    if (getpwuid_r(user, &entry, text, sizeof text, &found) != 0 || found == 0) return false;
    return snprintf(name, size, "%s", found->pw_name) < (int)size;
}

/// Renames a file unless the new name is taken: -1 with EEXIST if it is, with EINVAL or ENOSYS if
/// the file system or the kernel does not support that.
static inline int coffer_rename_exclusively(const char *from, const char *to) {
#if defined(__APPLE__)
    return renamex_np(from, to, RENAME_EXCL);
#elif defined(__linux__) && defined(SYS_renameat2)
    // 1 is RENAME_NOREPLACE: https://man7.org/linux/man-pages/man2/rename.2.html
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1);
#else
    errno = ENOSYS;
    return -1;
#endif
}

#if defined(F_OFD_SETLK)
enum { coffer_set_lock = F_OFD_SETLK, coffer_get_lock = F_OFD_GETLK };
#elif defined(__linux__)
// The header hides them without _GNU_SOURCE.
enum { coffer_set_lock = 37, coffer_get_lock = 36 };
#endif

/// Locks one byte of an open file, without waiting. The lock belongs to the open file description,
/// so two holders in one process exclude each other. It ends when the file is closed.
/// See <https://man7.org/linux/man-pages/man2/fcntl_locking.2.html>, "Open file description locks".
///
/// A system without such locks locks the whole file instead of byte 0, and no other byte.
///
/// - Returns: 0, or an error number: EAGAIN if another descriptor has the lock.
static inline int coffer_lock_byte(int descriptor, int64_t offset) {
#if defined(F_OFD_SETLK) || defined(__linux__)
    struct flock lock = {0};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = offset;
    lock.l_len = 1;
    if (fcntl(descriptor, coffer_set_lock, &lock) == 0) return 0;
    if (errno != EINVAL) return errno == EACCES ? EAGAIN : errno;
#endif
    if (offset != 0) return 0;
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

/// Whether another descriptor has the lock of `coffer_lock_byte`. Takes no lock.
static inline int coffer_is_byte_locked(int descriptor, int64_t offset) {
#if defined(F_OFD_SETLK) || defined(__linux__)
    struct flock lock = {0};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = offset;
    lock.l_len = 1;
    return fcntl(descriptor, coffer_get_lock, &lock) == 0 && lock.l_type != F_UNLCK;
#else
    return 0;
#endif
}

/// Writes the path under /proc that leads to an open descriptor.
static inline void coffer_descriptor_path(int descriptor, char *path, int byte_count) {
    snprintf(path, byte_count, "/proc/self/fd/%d", descriptor);
}

/// Opens a new file in a folder for its owner only, for writing. The file has no name yet. -1 if
/// the system or the file system does not support such files, or could not name it later.
static inline int coffer_open_unnamed(const char *folder) {
#if defined(__linux__) && defined(__O_TMPFILE)
    // O_TMPFILE, which the header hides without _GNU_SOURCE.
    int descriptor = open(folder, __O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0) return -1;
    char path[64];
    coffer_descriptor_path(descriptor, path, sizeof path);
    if (access(path, F_OK) == 0) return descriptor;
    close(descriptor);
    return -1;
#else
    errno = ENOTSUP;
    return -1;
#endif
}

/// Gives such a file a name unless the name is taken: -1 with EEXIST if it is.
/// https://man7.org/linux/man-pages/man2/open.2.html, O_TMPFILE
static inline int coffer_name_unnamed(int descriptor, const char *name) {
#ifdef __linux__
    char path[64];
    coffer_descriptor_path(descriptor, path, sizeof path);
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
#else
    errno = ENOTSUP;
    return -1;
#endif
}

#endif
