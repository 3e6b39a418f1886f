#define _GNU_SOURCE
#include "CFileRecorder.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAS_SANITIZER
#endif
#endif

#if defined(__linux__) && !defined(HAS_SANITIZER) && (defined(__x86_64__) || defined(__aarch64__))

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

// MARK: The system's own calls

static long kernel(long number, long a, long b, long c, long d, long e, long f) {
    long result;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    result = x0;
#endif
    return result;
}

static long checked(long result) {
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

#define CALL(number, a, b, c, d) \
    checked(kernel(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0))

// MARK: The record

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder_path[PATH_MAX];
static size_t folder_count;
static int record = -1;
static int64_t fail_number;
static int fail_error;
static bool fail_lasts;
static int64_t change_count;

typedef struct entry {
    uint8_t kind;
    uint8_t unused;
    uint16_t path_count;
    uint16_t other_count;
    uint16_t also_unused;
    uint64_t byte_count;
    uint64_t offset;
} entry;

static bool is_inside(const char *path) {
    return record >= 0 && strncmp(path, folder_path, folder_count) == 0
        && (path[folder_count] == '/' || path[folder_count] == 0);
}

/// The path of an open file that has a name in the folder; false for others.
static bool path_of(int descriptor, char *path) {
    if (record < 0) return false;
    char link_path[32];
    snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", descriptor);
    long count = kernel(
        SYS_readlinkat, AT_FDCWD, (long)link_path, (long)path, PATH_MAX - 1, 0, 0);
    if (count <= 0) return false;
    path[count] = 0;
    static const char gone[] = " (deleted)";
    size_t end = sizeof gone - 1;
    if ((size_t)count > end && strcmp(path + count - end, gone) == 0) return false;
    return is_inside(path);
}

/// Takes the lock if changes are recorded and this one is of a file in the folder.
static bool enters(bool is_in_folder) {
    if (record < 0 || !is_in_folder) return false;
    pthread_mutex_lock(&lock);
    return true;
}

static void leave(void) {
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
}

static void note(
    recorder_kind kind, const char *path, const char *other, const void *bytes, size_t count,
    uint64_t offset) {
    entry entry = {
        .kind = (uint8_t)kind,
        .path_count = (uint16_t)strlen(path),
        .other_count = (uint16_t)(other ? strlen(other) : 0),
        .byte_count = bytes ? count : 0,
        .offset = offset,
    };
    struct iovec parts[] = {
        {&entry, sizeof entry},
        {(void *)path, entry.path_count},
        {(void *)other, entry.other_count},
        {(void *)bytes, entry.byte_count},
    };
    int error = errno;
    if (CALL(SYS_writev, record, parts, 4, 0) < 0) perror("recorder");
    errno = error;
}

/// Whether the next change fails; sets `errno`.
static bool fails(recorder_kind kind, const char *path) {
    int64_t number = change_count++;
    if (fail_number < 0) return false;
    bool needs_room = kind == recorder_create || kind == recorder_write;
    if (number != fail_number && !(fail_lasts && needs_room && number > fail_number)) return false;
    note(recorder_failure, path, NULL, NULL, 0, kind);
    errno = fail_error;
    return true;
}

bool recorder_is_available(void) { return true; }

bool recorder_begin(
    const char *folder, const char *path, int64_t fail_at, int error, bool is_lasting) {
    long opened = CALL(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                       0600);
    if (opened < 0 || strlen(folder) >= PATH_MAX) return false;
    strcpy(folder_path, folder);
    folder_count = strlen(folder);
    fail_number = fail_at;
    fail_error = error;
    fail_lasts = is_lasting;
    record = (int)opened;
    return true;
}

void recorder_mark(const char *text) {
    if (!enters(true)) return;
    note(recorder_mark_text, text, NULL, NULL, 0, 0);
    leave();
}

// MARK: Opening

static int opened(int base, const char *path, int flags, mode_t mode) {
    bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
    if (!enters(changes && path[0] == '/' && is_inside(path)))
        return (int)CALL(SYS_openat, base, path, flags, mode);
    struct stat found;
    bool existed = lstat(path, &found) == 0;
    long result = -1;
    if (existed && !(flags & O_TRUNC)) {
        result = CALL(SYS_openat, base, path, flags, mode);
    } else if (!fails(recorder_create, path)) {
        result = CALL(SYS_openat, base, path, flags, mode);
        if (result >= 0 && !existed) note(recorder_create, path, NULL, NULL, 0, 0);
        if (result >= 0 && existed) note(recorder_truncate, path, NULL, NULL, 0, 0);
    }
    leave();
    return (int)result;
}

#define MODE(flags)                          \
    mode_t mode = 0;                         \
    if ((flags) & (O_CREAT | O_TMPFILE)) {   \
        va_list list;                        \
        va_start(list, flags);               \
        mode = va_arg(list, mode_t);         \
        va_end(list);                        \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int base, const char *path, int flags, ...) {
    MODE(flags)
    return opened(base, path, flags, mode);
}

// MARK: Writing

static ssize_t written(
    int descriptor, const void *bytes, size_t count, int64_t offset, bool is_at_offset) {
    char path[PATH_MAX];
    ssize_t result = -1;
    if (!enters(path_of(descriptor, path))) {
        return is_at_offset ? CALL(SYS_pwrite64, descriptor, bytes, count, offset)
                            : CALL(SYS_write, descriptor, bytes, count, 0);
    }
    if (!fails(recorder_write, path)) {
        if (!is_at_offset) offset = CALL(SYS_lseek, descriptor, 0, SEEK_CUR, 0);
        result = is_at_offset ? CALL(SYS_pwrite64, descriptor, bytes, count, offset)
                              : CALL(SYS_write, descriptor, bytes, count, 0);
        if (result > 0) note(recorder_write, path, NULL, bytes, (size_t)result, (uint64_t)offset);
    }
    leave();
    return result;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    return written(descriptor, bytes, count, 0, false);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    return written(descriptor, bytes, count, offset, true);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return written(descriptor, bytes, count, offset, true);
}

static int truncated(int descriptor, int64_t size) {
    char path[PATH_MAX];
    if (!enters(path_of(descriptor, path)))
        return (int)CALL(SYS_ftruncate, descriptor, size, 0, 0);
    int result = -1;
    if (!fails(recorder_truncate, path)) {
        result = (int)CALL(SYS_ftruncate, descriptor, size, 0, 0);
        if (result == 0) note(recorder_truncate, path, NULL, NULL, 0, (uint64_t)size);
    }
    leave();
    return result;
}

int ftruncate(int descriptor, off_t size) { return truncated(descriptor, size); }

int ftruncate64(int descriptor, off64_t size) { return truncated(descriptor, size); }

static int synced(long number, int descriptor) {
    char path[PATH_MAX];
    if (!enters(path_of(descriptor, path)))
        return (int)CALL(number, descriptor, 0, 0, 0);
    struct stat found;
    bool is_folder = fstat(descriptor, &found) == 0 && S_ISDIR(found.st_mode);
    int result = -1;
    // The model of the record makes it durable, so the disk need not.
    if (!fails(recorder_sync, path)) {
        result = 0;
        note(is_folder ? recorder_sync_folder : recorder_sync, path, NULL, NULL, 0, 0);
    }
    leave();
    return result;
}

int fsync(int descriptor) { return synced(SYS_fsync, descriptor); }

int fdatasync(int descriptor) { return synced(SYS_fdatasync, descriptor); }

// MARK: Names

static int renamed_by_kernel(const char *from, const char *to, unsigned flags) {
    return (int)checked(
        kernel(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, (long)flags, 0));
}

static int renamed(const char *from, const char *to, unsigned flags) {
    if (!enters(is_inside(from) && is_inside(to))) return renamed_by_kernel(from, to, flags);
    int result = -1;
    if (!fails(recorder_rename, from)) {
        result = renamed_by_kernel(from, to, flags);
        if (result == 0) note(recorder_rename, from, to, NULL, 0, 0);
    }
    leave();
    return result;
}

int rename(const char *from, const char *to) { return renamed(from, to, 0); }

static int linked_by_kernel(const char *from, const char *to) {
    return (int)checked(kernel(SYS_linkat, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0));
}

int link(const char *from, const char *to) {
    if (!enters(is_inside(from) && is_inside(to))) return linked_by_kernel(from, to);
    int result = -1;
    if (!fails(recorder_link, from)) {
        result = linked_by_kernel(from, to);
        if (result == 0) note(recorder_link, from, to, NULL, 0, 0);
    }
    leave();
    return result;
}

int unlink(const char *path) {
    if (!enters(is_inside(path))) return (int)CALL(SYS_unlinkat, AT_FDCWD, path, 0, 0);
    struct stat found;
    int result = -1;
    // What does not exist is asked for often, and changes nothing.
    if (lstat(path, &found) != 0 || !fails(recorder_unlink, path)) {
        result = (int)CALL(SYS_unlinkat, AT_FDCWD, path, 0, 0);
        if (result == 0) note(recorder_unlink, path, NULL, NULL, 0, 0);
    }
    leave();
    return result;
}

/// The C library has no function for every call of the system.
long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_renameat2 && (int)a == AT_FDCWD && (int)c == AT_FDCWD && record >= 0)
        return renamed((const char *)b, (const char *)d, (unsigned)e);
    return checked(kernel(number, a, b, c, d, e, f));
}

#else

bool recorder_is_available(void) { return false; }

bool recorder_begin(
    const char *folder, const char *path, int64_t fail_at, int error, bool is_lasting) {
    return false;
}

void recorder_mark(const char *text) {}

#endif
