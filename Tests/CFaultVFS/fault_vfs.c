#include "CFaultVFS.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kind_count = 10, sector_byte_count = 512 };

/// A change of a file that no sync has saved yet.
typedef struct change {
    struct change *next;
    bool is_truncation;
    int64_t offset;  // of a truncation: the new size
    int64_t count;
    unsigned char bytes[];
} change;

/// A file, with or without a name; one that was deleted may come back.
typedef struct node {
    struct node *next;
    char *path;
    bool is_named;          // as the running system sees it
    bool is_named_durably;  // as it is after a power loss
    unsigned char *bytes;   // what is synced
    int64_t count;
    int64_t capacity;
    change *first;
    change *last;
} node;

/// A change of the folder that no sync has saved yet.
typedef struct naming {
    struct naming *next;
    node *node;
    bool is_named;
} naming;

struct fault_disk {
    sqlite3_vfs vfs;  // first: the engine knows the disk by it
    sqlite3_vfs *system;
    char name[32];
    pthread_mutex_t mutex;  // guards all that follows
    int64_t open_file_count;
    bool is_destroyed;
    int64_t operation_counts[kind_count];
    uint32_t armed_kinds;
    int64_t skip_count;
    int64_t strike_count;
    fault_action action;
    int code;
    int64_t struck_count;
    bool is_off;
    bool is_recording;
    bool ignores_syncs;
    bool holds_main_syncs;
    int64_t held_count;
    pthread_cond_t released;
    node *nodes;
    naming *first_naming;
    naming *last_naming;
};

/// An open file: ours, then the system's in the same memory.
typedef struct fault_file {
    sqlite3_file base;
    fault_disk *disk;
    node *node;          // NULL if not recorded
    bool is_main;
    bool syncs_folder;   // with its first sync, as the system's VFS does for a new journal
    sqlite3_file *system;
} fault_file;

// MARK: Strikes

static int index_of(uint32_t kind) {
    int index = 0;
    while (kind > 1) {
        kind >>= 1;
        index++;
    }
    return index;
}

static int natural_code(uint32_t kind) {
    switch (kind) {
    case fault_open: return SQLITE_CANTOPEN;
    case fault_read: return SQLITE_IOERR_READ;
    case fault_write: return SQLITE_IOERR_WRITE;
    case fault_truncate: return SQLITE_IOERR_TRUNCATE;
    case fault_sync: return SQLITE_IOERR_FSYNC;
    case fault_delete: return SQLITE_IOERR_DELETE;
    case fault_shm: return SQLITE_IOERR_SHMLOCK;
    case fault_lock: return SQLITE_IOERR_LOCK;
    case fault_access: return SQLITE_IOERR_ACCESS;
    default: return SQLITE_IOERR_FSTAT;
    }
}

typedef struct verdict {
    bool is_struck;
    fault_action action;
    int code;
} verdict;

/// Counts an operation and returns what becomes of it. The caller must hold the mutex.
static verdict judge(fault_disk *disk, uint32_t kind) {
    verdict result = {false, fault_fail, natural_code(kind)};
    disk->operation_counts[index_of(kind)]++;
    if (disk->is_off) {
        result.is_struck = true;
        return result;
    }
    if ((disk->armed_kinds & kind) == 0 || disk->strike_count == 0) return result;
    if (disk->skip_count > 0) {
        disk->skip_count--;
        return result;
    }
    if (disk->strike_count > 0) disk->strike_count--;
    disk->struck_count++;
    result.is_struck = true;
    result.action = disk->action;
    if (disk->code != 0) result.code = disk->code;
    if (disk->action == fault_power_off) disk->is_off = true;
    if (disk->action == fault_kill) kill(getpid(), SIGKILL);
    return result;
}

/// The same for an operation that either fails or works.
static int judge_simply(fault_disk *disk, uint32_t kind) {
    pthread_mutex_lock(&disk->mutex);
    verdict result = judge(disk, kind);
    pthread_mutex_unlock(&disk->mutex);
    // A lie about what was read would be an alteration, which is the MAC's task.
    return result.is_struck ? result.code : SQLITE_OK;
}

// MARK: What is synced

static bool reserve(node *node, int64_t count) {
    if (count <= node->capacity) return true;
    int64_t capacity = count * 2;
    unsigned char *bytes = realloc(node->bytes, (size_t)capacity);
    if (bytes == NULL) return false;
    memset(bytes + node->capacity, 0, (size_t)(capacity - node->capacity));
    node->bytes = bytes;
    node->capacity = capacity;
    return true;
}

/// Applies the bytes `[start, end)` of a change.
static void apply_part(node *node, const change *change, int64_t start, int64_t end) {
    if (end <= start || !reserve(node, change->offset + end)) return;
    memcpy(node->bytes + change->offset + start, change->bytes + start, (size_t)(end - start));
    if (node->count < change->offset + end) node->count = change->offset + end;
}

static void apply(node *node, const change *change) {
    if (!change->is_truncation) {
        apply_part(node, change, 0, change->count);
    } else if (change->offset < node->count) {
        memset(node->bytes + change->offset, 0, (size_t)(node->count - change->offset));
        node->count = change->offset;
    } else if (reserve(node, change->offset)) {
        node->count = change->offset;
    }
}

static void forget_changes(node *node) {
    while (node->first != NULL) {
        change *next = node->first->next;
        free(node->first);
        node->first = next;
    }
    node->last = NULL;
}

static void save_file(node *node) {
    for (change *change = node->first; change != NULL; change = change->next) {
        apply(node, change);
    }
    forget_changes(node);
}

static void note_change(node *node, bool is_truncation, const void *bytes, int64_t count,
                        int64_t offset) {
    change *added = calloc(1, sizeof(change) + (size_t)count);
    if (added == NULL) abort();
    added->is_truncation = is_truncation;
    added->offset = offset;
    added->count = count;
    if (count > 0) memcpy(added->bytes, bytes, (size_t)count);
    if (node->last != NULL) {
        node->last->next = added;
    } else {
        node->first = added;
    }
    node->last = added;
}

static void note_naming(fault_disk *disk, node *node, bool is_named) {
    naming *added = calloc(1, sizeof(naming));
    if (added == NULL) abort();
    added->node = node;
    added->is_named = is_named;
    if (disk->last_naming != NULL) {
        disk->last_naming->next = added;
    } else {
        disk->first_naming = added;
    }
    disk->last_naming = added;
    node->is_named = is_named;
}

/// Saves the first `count_max` changes of the folder and forgets the others.
static void save_folder(fault_disk *disk, int64_t count_max) {
    for (int64_t index = 0; disk->first_naming != NULL; index++) {
        naming *naming = disk->first_naming;
        if (index < count_max) naming->node->is_named_durably = naming->is_named;
        disk->first_naming = naming->next;
        free(naming);
    }
    disk->last_naming = NULL;
}

static node *named_node(fault_disk *disk, const char *path) {
    for (node *node = disk->nodes; node != NULL; node = node->next) {
        if (node->is_named && strcmp(node->path, path) == 0) return node;
    }
    return NULL;
}

/// The node of a file that was just opened. Content from before counts as synced.
static node *node_of_opened(fault_disk *disk, const char *path, sqlite3_file *file, bool was_there) {
    node *known = named_node(disk, path);
    if (known != NULL) return known;
    node *added = calloc(1, sizeof(node));
    if (added == NULL) abort();
    added->path = strdup(path);
    added->next = disk->nodes;
    disk->nodes = added;
    if (!was_there) {
        note_naming(disk, added, true);
        return added;
    }
    added->is_named = true;
    added->is_named_durably = true;
    sqlite3_int64 count = 0;
    if (file->pMethods->xFileSize(file, &count) == SQLITE_OK && count > 0 && reserve(added, count) &&
        file->pMethods->xRead(file, added->bytes, (int)count, 0) == SQLITE_OK) {
        added->count = count;
    }
    return added;
}

// MARK: Files

static fault_file *ours(sqlite3_file *file) { return (fault_file *)file; }

static int file_close(sqlite3_file *file) {
    fault_disk *disk = ours(file)->disk;
    int code = ours(file)->system->pMethods->xClose(ours(file)->system);
    pthread_mutex_lock(&disk->mutex);
    disk->open_file_count--;
    pthread_mutex_unlock(&disk->mutex);
    return code;
}

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    int code = judge_simply(ours(file)->disk, fault_read);
    if (code != SQLITE_OK) return code;
    return ours(file)->system->pMethods->xRead(ours(file)->system, bytes, count, offset);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    fault_disk *disk = ours(file)->disk;
    node *node = ours(file)->node;
    pthread_mutex_lock(&disk->mutex);
    bool was_off = disk->is_off;
    verdict verdict = judge(disk, fault_write);
    int code = SQLITE_OK;
    if (verdict.is_struck) {
        code = verdict.action == fault_lie ? SQLITE_OK : verdict.code;
        if (was_off || verdict.action == fault_fail || verdict.action == fault_lie) count = 0;
        if (verdict.action == fault_shorten) count /= 2;
    }
    if (count > 0) {
        int written =
            ours(file)->system->pMethods->xWrite(ours(file)->system, bytes, count, offset);
        if (code == SQLITE_OK) code = written;
        if (node != NULL && written == SQLITE_OK) note_change(node, false, bytes, count, offset);
    }
    pthread_mutex_unlock(&disk->mutex);
    return code;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    fault_disk *disk = ours(file)->disk;
    node *node = ours(file)->node;
    pthread_mutex_lock(&disk->mutex);
    bool was_off = disk->is_off;
    verdict verdict = judge(disk, fault_truncate);
    bool is_done = !verdict.is_struck || (verdict.action == fault_power_off && !was_off);
    int code = verdict.is_struck && verdict.action != fault_lie ? verdict.code : SQLITE_OK;
    if (is_done) {
        int done = ours(file)->system->pMethods->xTruncate(ours(file)->system, size);
        if (code == SQLITE_OK) code = done;
        if (node != NULL && done == SQLITE_OK) note_change(node, true, NULL, 0, size);
    }
    pthread_mutex_unlock(&disk->mutex);
    return code;
}

static int file_sync(sqlite3_file *file, int flags) {
    (void)flags;
    fault_disk *disk = ours(file)->disk;
    node *node = ours(file)->node;
    pthread_mutex_lock(&disk->mutex);
    disk->held_count++;
    while (disk->holds_main_syncs && ours(file)->is_main) {
        pthread_cond_wait(&disk->released, &disk->mutex);
    }
    disk->held_count--;
    verdict verdict = judge(disk, fault_sync);
    int code = verdict.is_struck && verdict.action != fault_lie ? verdict.code : SQLITE_OK;
    if (!verdict.is_struck && node != NULL && !disk->ignores_syncs) {
        save_file(node);
        if (ours(file)->syncs_folder) {
            save_folder(disk, INT64_MAX);
            ours(file)->syncs_folder = false;
        }
    }
    pthread_mutex_unlock(&disk->mutex);
    return code;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    int code = judge_simply(ours(file)->disk, fault_size);
    if (code != SQLITE_OK) return code;
    return ours(file)->system->pMethods->xFileSize(ours(file)->system, size);
}

static int file_lock(sqlite3_file *file, int level) {
    int code = judge_simply(ours(file)->disk, fault_lock);
    if (code != SQLITE_OK) return code;
    return ours(file)->system->pMethods->xLock(ours(file)->system, level);
}

// An unlock always works: a lock that stayed would disturb what comes after the fault.
static int file_unlock(sqlite3_file *file, int level) {
    return ours(file)->system->pMethods->xUnlock(ours(file)->system, level);
}

static int file_check_reserved(sqlite3_file *file, int *is_reserved) {
    return ours(file)->system->pMethods->xCheckReservedLock(ours(file)->system, is_reserved);
}

static int file_control(sqlite3_file *file, int operation, void *argument) {
    return ours(file)->system->pMethods->xFileControl(ours(file)->system, operation, argument);
}

static int file_sector_size(sqlite3_file *file) {
    return ours(file)->system->pMethods->xSectorSize(ours(file)->system);
}

static int file_characteristics(sqlite3_file *file) {
    return ours(file)->system->pMethods->xDeviceCharacteristics(ours(file)->system);
}

static int file_shm_map(sqlite3_file *file, int region, int size, int extends,
                        void volatile **memory) {
    int code = judge_simply(ours(file)->disk, fault_shm);
    if (code != SQLITE_OK) {
        *memory = NULL;
        return code;
    }
    return ours(file)->system->pMethods->xShmMap(ours(file)->system, region, size, extends, memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    if (flags & SQLITE_SHM_LOCK) {
        int code = judge_simply(ours(file)->disk, fault_shm);
        if (code != SQLITE_OK) return code;
    }
    return ours(file)->system->pMethods->xShmLock(ours(file)->system, offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file) {
    ours(file)->system->pMethods->xShmBarrier(ours(file)->system);
}

static int file_shm_unmap(sqlite3_file *file, int deletes) {
    // Without power nothing is deleted.
    bool is_off = fault_disk_is_off(ours(file)->disk);
    return ours(file)->system->pMethods->xShmUnmap(ours(file)->system, is_off ? 0 : deletes);
}

static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int count, void **memory) {
    (void)file, (void)offset, (void)count;
    *memory = NULL;  // nothing is mapped, so that every access passes here
    return SQLITE_OK;
}

static int file_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *memory) {
    (void)file, (void)offset, (void)memory;
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    3,
    file_close,
    file_read,
    file_write,
    file_truncate,
    file_sync,
    file_size,
    file_lock,
    file_unlock,
    file_check_reserved,
    file_control,
    file_sector_size,
    file_characteristics,
    file_shm_map,
    file_shm_lock,
    file_shm_barrier,
    file_shm_unmap,
    file_fetch,
    file_unfetch,
};

// MARK: The VFS

static fault_disk *disk_of(sqlite3_vfs *vfs) { return (fault_disk *)vfs; }

static int disk_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *flags_given) {
    fault_disk *disk = disk_of(vfs);
    fault_file *opened = ours(file);
    memset(opened, 0, sizeof(fault_file));
    opened->disk = disk;
    opened->system = (sqlite3_file *)(opened + 1);
    const int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
    const int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;

    pthread_mutex_lock(&disk->mutex);
    verdict verdict = judge(disk, fault_open);
    int code = verdict.is_struck ? verdict.code : SQLITE_OK;
    if (code == SQLITE_OK) {
        int was_there = 1;
        bool is_kept = disk->is_recording && path != NULL && (flags & kept) != 0;
        if (is_kept) disk->system->xAccess(disk->system, path, SQLITE_ACCESS_EXISTS, &was_there);
        code = disk->system->xOpen(disk->system, path, opened->system, flags, flags_given);
        // "The application should set pMethods to NULL if the file was not opened":
        // https://www.sqlite.org/c3ref/vfs.html
        if (code != SQLITE_OK && opened->system->pMethods != NULL) {
            opened->system->pMethods->xClose(opened->system);
        }
        if (code == SQLITE_OK) {
            opened->base.pMethods = &methods;
            opened->is_main = (flags & SQLITE_OPEN_MAIN_DB) != 0;
            disk->open_file_count++;
            if (is_kept) opened->node = node_of_opened(disk, path, opened->system, was_there);
            opened->syncs_folder = (flags & journals) != 0 && (flags & SQLITE_OPEN_CREATE) != 0;
        }
    }
    pthread_mutex_unlock(&disk->mutex);
    return code;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int syncs_folder) {
    fault_disk *disk = disk_of(vfs);
    pthread_mutex_lock(&disk->mutex);
    bool was_off = disk->is_off;
    verdict verdict = judge(disk, fault_delete);
    bool is_done = !verdict.is_struck || (verdict.action == fault_power_off && !was_off);
    int code = verdict.is_struck && verdict.action != fault_lie ? verdict.code : SQLITE_OK;
    if (is_done) {
        int done = disk->system->xDelete(disk->system, path, 0);
        if (code == SQLITE_OK) code = done;
        node *node = disk->is_recording && done == SQLITE_OK ? named_node(disk, path) : NULL;
        if (node != NULL) note_naming(disk, node, false);
        if (syncs_folder && !verdict.is_struck && !disk->ignores_syncs) {
            save_folder(disk, INT64_MAX);
        }
    }
    pthread_mutex_unlock(&disk->mutex);
    return code;
}

static int disk_access(sqlite3_vfs *vfs, const char *path, int flags, int *result) {
    int code = judge_simply(disk_of(vfs), fault_access);
    if (code != SQLITE_OK) return code;
    return disk_of(vfs)->system->xAccess(disk_of(vfs)->system, path, flags, result);
}

static int disk_full_path(sqlite3_vfs *vfs, const char *path, int count, char *result) {
    return disk_of(vfs)->system->xFullPathname(disk_of(vfs)->system, path, count, result);
}

static int disk_randomness(sqlite3_vfs *vfs, int count, char *bytes) {
    return disk_of(vfs)->system->xRandomness(disk_of(vfs)->system, count, bytes);
}

static int disk_sleep(sqlite3_vfs *vfs, int microseconds) {
    return disk_of(vfs)->system->xSleep(disk_of(vfs)->system, microseconds);
}

static int disk_time(sqlite3_vfs *vfs, double *time) {
    return disk_of(vfs)->system->xCurrentTime(disk_of(vfs)->system, time);
}

static int disk_last_error(sqlite3_vfs *vfs, int count, char *text) {
    return disk_of(vfs)->system->xGetLastError(disk_of(vfs)->system, count, text);
}

static int disk_time_64(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    return disk_of(vfs)->system->xCurrentTimeInt64(disk_of(vfs)->system, time);
}

// MARK: Disks

fault_disk *fault_disk_create(void) {
    static atomic_int number;
    if (sqlite3_initialize() != SQLITE_OK) return NULL;
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    fault_disk *disk = calloc(1, sizeof(fault_disk));
    if (system == NULL || disk == NULL) {
        free(disk);
        return NULL;
    }
    disk->system = system;
    snprintf(disk->name, sizeof(disk->name), "fault-%d", atomic_fetch_add(&number, 1));
    pthread_mutex_init(&disk->mutex, NULL);
    pthread_cond_init(&disk->released, NULL);
    disk->vfs.iVersion = 2;
    disk->vfs.szOsFile = (int)sizeof(fault_file) + system->szOsFile;
    disk->vfs.mxPathname = system->mxPathname;
    disk->vfs.zName = disk->name;
    disk->vfs.xOpen = disk_open;
    disk->vfs.xDelete = disk_delete;
    disk->vfs.xAccess = disk_access;
    disk->vfs.xFullPathname = disk_full_path;
    disk->vfs.xRandomness = disk_randomness;
    disk->vfs.xSleep = disk_sleep;
    disk->vfs.xCurrentTime = disk_time;
    disk->vfs.xGetLastError = disk_last_error;
    disk->vfs.xCurrentTimeInt64 = disk_time_64;
    if (sqlite3_vfs_register(&disk->vfs, 0) != SQLITE_OK) {
        free(disk);
        return NULL;
    }
    return disk;
}

const char *fault_disk_name(const fault_disk *disk) { return disk->name; }

void fault_disk_destroy(fault_disk *disk) {
    sqlite3_vfs_unregister(&disk->vfs);
    pthread_mutex_lock(&disk->mutex);
    bool is_in_use = disk->open_file_count > 0;
    pthread_mutex_unlock(&disk->mutex);
    if (is_in_use) return;
    save_folder(disk, 0);
    while (disk->nodes != NULL) {
        node *node = disk->nodes;
        disk->nodes = node->next;
        forget_changes(node);
        free(node->bytes);
        free(node->path);
        free(node);
    }
    pthread_cond_destroy(&disk->released);
    pthread_mutex_destroy(&disk->mutex);
    free(disk);
}

void fault_disk_arm(fault_disk *disk, uint32_t kinds, int64_t skip_count, int64_t count,
                    fault_action action, int code) {
    pthread_mutex_lock(&disk->mutex);
    disk->armed_kinds = kinds;
    disk->skip_count = skip_count;
    disk->strike_count = count;
    disk->action = action;
    disk->code = code;
    pthread_mutex_unlock(&disk->mutex);
}

void fault_disk_disarm(fault_disk *disk) { fault_disk_arm(disk, 0, 0, 0, fault_fail, 0); }

int64_t fault_disk_struck_count(fault_disk *disk) {
    pthread_mutex_lock(&disk->mutex);
    int64_t count = disk->struck_count;
    pthread_mutex_unlock(&disk->mutex);
    return count;
}

int64_t fault_disk_operation_count(fault_disk *disk, uint32_t kinds) {
    int64_t count = 0;
    pthread_mutex_lock(&disk->mutex);
    for (int index = 0; index < kind_count; index++) {
        if (kinds & (1u << index)) count += disk->operation_counts[index];
    }
    pthread_mutex_unlock(&disk->mutex);
    return count;
}

static void set(fault_disk *disk, bool *flag) {
    pthread_mutex_lock(&disk->mutex);
    *flag = true;
    pthread_mutex_unlock(&disk->mutex);
}

void fault_disk_record(fault_disk *disk) { set(disk, &disk->is_recording); }

void fault_disk_ignore_syncs(fault_disk *disk) { set(disk, &disk->ignores_syncs); }

void fault_disk_hold_main_syncs(fault_disk *disk) { set(disk, &disk->holds_main_syncs); }

void fault_disk_release(fault_disk *disk) {
    pthread_mutex_lock(&disk->mutex);
    disk->holds_main_syncs = false;
    pthread_cond_broadcast(&disk->released);
    pthread_mutex_unlock(&disk->mutex);
}

int64_t fault_disk_held_count(fault_disk *disk) {
    pthread_mutex_lock(&disk->mutex);
    int64_t count = disk->held_count;
    pthread_mutex_unlock(&disk->mutex);
    return count;
}

void fault_disk_cut(fault_disk *disk) { set(disk, &disk->is_off); }

bool fault_disk_is_off(fault_disk *disk) {
    pthread_mutex_lock(&disk->mutex);
    bool is_off = disk->is_off;
    pthread_mutex_unlock(&disk->mutex);
    return is_off;
}

// MARK: After the power loss

/// SplitMix64, so that a seed means the same on every system.
static uint64_t next_random(uint64_t *state) {
    uint64_t value = (*state += 0x9e3779b97f4a7c15u);
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/// The number of a file's changes that have reached a sector (or its size: sector -1) when the
/// power went.
static int64_t reached_count(uint64_t seed, int64_t sector, int64_t change_count) {
    uint64_t state = seed ^ (uint64_t)sector * 0xd1342543de82ef95u;
    switch (next_random(&state) % 4) {
    case 0: return 0;
    case 1: return (int64_t)(next_random(&state) % (uint64_t)(change_count + 1));
    default: return change_count;
    }
}

/// Applies an arbitrary part of what was not synced.
///
/// The system writes each sector as it is in memory at some moment, and the drive writes it
/// completely or not at all. So a sector has a number of its first changes.
static void apply_some(node *node, uint64_t seed) {
    int64_t change_count = 0;
    for (change *change = node->first; change != NULL; change = change->next) change_count++;
    int64_t index = 0;
    for (change *change = node->first; change != NULL; change = change->next, index++) {
        if (change->is_truncation) {
            if (index < reached_count(seed, -1, change_count)) apply(node, change);
            continue;
        }
        int64_t start = 0;
        while (start < change->count) {
            int64_t sector = (change->offset + start) / sector_byte_count;
            int64_t end = (sector + 1) * sector_byte_count - change->offset;
            if (end > change->count) end = change->count;
            if (index < reached_count(seed, sector, change_count)) {
                apply_part(node, change, start, end);
            }
            start = end;
        }
    }
}

static bool write_file(const node *node) {
    FILE *file = fopen(node->path, "wb");
    if (file == NULL) return false;
    size_t count = (size_t)node->count;
    bool is_written = count == 0 || fwrite(node->bytes, 1, count, file) == count;
    return fclose(file) == 0 && is_written;
}

bool fault_disk_restore(fault_disk *disk, uint64_t seed) {
    pthread_mutex_lock(&disk->mutex);
    disk->is_off = true;
    uint64_t random = seed;
    int64_t naming_count = 0;
    for (naming *naming = disk->first_naming; naming != NULL; naming = naming->next) naming_count++;
    save_folder(disk,
                seed == 0 ? 0 : (int64_t)(next_random(&random) % (uint64_t)(naming_count + 1)));
    bool is_restored = disk->open_file_count == 0;
    for (node *node = disk->nodes; node != NULL; node = node->next) {
        if (seed != 0) apply_some(node, next_random(&random));
        forget_changes(node);
        unlink(node->path);
    }
    for (node *node = disk->nodes; node != NULL; node = node->next) {
        if (node->is_named_durably && !write_file(node)) is_restored = false;
    }
    pthread_mutex_unlock(&disk->mutex);
    return is_restored;
}
