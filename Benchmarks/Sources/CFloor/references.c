#include <stdio.h>
#include <stdlib.h>

#include "floor.h"

// Ten children for each parent, and every seventh child without one. Half of the parents are wanted.

typedef struct {
    int64_t id;
    bench_bytes name;
    bool is_wanted;
} parent;

typedef struct {
    /// bench_unknown without a parent.
    int64_t id, parent;
    bench_bytes name;
    int64_t size;
} child;

enum { children = 10 };

static bench_bytes owned(bench_bytes bytes) {
    char *copy = malloc(bytes.count > 0 ? (size_t)bytes.count : 1);
    if (copy == NULL) bench_fail("memory", "none left");
    return (bench_bytes){memcpy(copy, bytes.bytes, (size_t)bytes.count), bytes.count};
}

static inline parent parent_at(sqlite3_stmt *statement, int column) {
    int64_t id = integer_of(sqlite3_column_value(statement, column));
    bench_bytes name = owned(text_of(sqlite3_column_value(statement, column + 1)));
    return (parent){id, name, integer_of(sqlite3_column_value(statement, column + 2)) != 0};
}

static inline child child_at(sqlite3_stmt *statement, int column) {
    int64_t id = integer_of(sqlite3_column_value(statement, column));
    sqlite3_value *reference = sqlite3_column_value(statement, column + 1);
    int64_t parent = sqlite3_value_type(reference) == SQLITE_NULL ? bench_unknown : integer_of(reference);
    bench_bytes name = owned(text_of(sqlite3_column_value(statement, column + 2)));
    return (child){id, parent, name, integer_of(sqlite3_column_value(statement, column + 3))};
}

static void add_parent(bench_check *check, const parent *row) {
    bench_check_integer(check, row->id);
    bench_check_bytes(check, row->name.bytes, row->name.count);
    bench_check_end_row(check);
}

static void add_child(bench_check *check, const child *row, const parent *of) {
    bench_check_integer(check, row->id);
    bench_check_bytes(check, row->name.bytes, row->name.count);
    bench_check_integer(check, row->size);
    if (of != NULL) bench_check_bytes(check, of->name.bytes, of->name.count);
    bench_check_end_row(check);
}

// MARK: Filling

/// The values follow from the numbers of the rows, as in Swift.
static void fill(int64_t count) {
    floor_run("CREATE TABLE parent (id INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL, isWanted INTEGER NOT NULL)");
    floor_run("CREATE TABLE child (id INTEGER PRIMARY KEY NOT NULL, parent INTEGER REFERENCES parent (id), "
              "name TEXT NOT NULL, size INTEGER NOT NULL)");
    floor_run("CREATE INDEX index_child_parent ON child (parent)");
    sqlite3_stmt *first = floor_prepare("INSERT INTO parent VALUES (?1, ?2, ?3)");
    sqlite3_stmt *second = floor_prepare("INSERT INTO child VALUES (?1, ?2, ?3, ?4)");
    char name[64];
    floor_begin();
    for (int64_t id = 1; id <= count / children; id++) {
        int bytes = snprintf(name, sizeof name, "the parent with number %lld", (long long)id);
        sqlite3_bind_int64(first, 1, id);
        sqlite3_bind_text(first, 2, name, bytes, SQLITE_STATIC);
        sqlite3_bind_int64(first, 3, id % 2);
        if (sqlite3_step(first) != SQLITE_DONE) floor_fail("insert");
        sqlite3_reset(first);
    }
    for (int64_t id = 1; id <= count; id++) {
        int bytes = snprintf(name, sizeof name, "the child with number %lld", (long long)id);
        sqlite3_bind_int64(second, 1, id);
        if (id % 7 == 0) {
            sqlite3_bind_null(second, 2);
        } else {
            sqlite3_bind_int64(second, 2, bench_shuffled(id - 1, count) / children + 1);
        }
        sqlite3_bind_text(second, 3, name, bytes, SQLITE_STATIC);
        sqlite3_bind_int64(second, 4, id % 100);
        if (sqlite3_step(second) != SQLITE_DONE) floor_fail("insert");
        sqlite3_reset(second);
    }
    floor_commit();
    sqlite3_finalize(first), sqlite3_finalize(second);
}

// MARK: refs-left

/// Each child and its parent, if it has one.
static bench_check join(sqlite3_stmt *select, int64_t count) {
    child *found = malloc((size_t)count * sizeof *found);
    parent *parents = calloc((size_t)count, sizeof *parents);
    int64_t row = 0;
    int code;
    bench_start();
    floor_begin();
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        found[row] = child_at(select, 0);
        if (sqlite3_column_type(select, 4) != SQLITE_NULL) parents[row] = parent_at(select, 4);
        row++;
    }
    if (code != SQLITE_DONE) floor_fail("join");
    sqlite3_reset(select);
    floor_commit();
    bench_stop();
    bench_check read = {0};
    for (int64_t i = 0; i < row; i++) {
        add_child(&read, found + i, parents[i].name.bytes == NULL ? NULL : parents + i);
    }
    bench_start();
    for (int64_t i = 0; i < row; i++) free((void *)found[i].name.bytes), free((void *)parents[i].name.bytes);
    free(found), free(parents);
    bench_stop();
    return read;
}

// MARK: refs-all

typedef struct {
    parent parent;
    child *children;
    int64_t count, room;
} family;

/// Each wanted parent with all its children: one statement for each table.
static bench_check include(sqlite3_stmt *first, sqlite3_stmt *second, int64_t count) {
    family *families = calloc((size_t)(count / children), sizeof *families);
    int64_t last = -1;
    int code;
    bench_start();
    floor_begin();
    while ((code = sqlite3_step(first)) == SQLITE_ROW) families[++last].parent = parent_at(first, 0);
    if (code != SQLITE_DONE) floor_fail("parents");
    sqlite3_reset(first);
    family *one = families;
    while ((code = sqlite3_step(second)) == SQLITE_ROW) {
        child row = child_at(second, 0);
        while (one->parent.id != row.parent) one++;
        if (one->count == one->room) {
            one->room = one->room == 0 ? 4 : one->room * 2;
            one->children = realloc(one->children, (size_t)one->room * sizeof row);
        }
        one->children[one->count++] = row;
    }
    if (code != SQLITE_DONE) floor_fail("children");
    sqlite3_reset(second);
    floor_commit();
    bench_stop();
    bench_check read = {0};
    for (int64_t i = 0; i <= last; i++) {
        add_parent(&read, &families[i].parent);
        for (int64_t j = 0; j < families[i].count; j++) add_child(&read, families[i].children + j, &families[i].parent);
    }
    bench_start();
    for (int64_t i = 0; i <= last; i++) {
        for (int64_t j = 0; j < families[i].count; j++) free((void *)families[i].children[j].name.bytes);
        free((void *)families[i].parent.name.bytes), free(families[i].children);
    }
    free(families);
    bench_stop();
    return read;
}

// MARK: refs-group

/// The number of children of each parent, and the sum and the mean of their sizes.
static bench_check group(sqlite3_stmt *select, int64_t count) {
    struct { int64_t parent, count, sum; double mean; } *groups = malloc((size_t)(count / children) * sizeof *groups);
    int64_t row = 0;
    int code;
    bench_start();
    floor_begin();
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        groups[row].parent = integer_of(sqlite3_column_value(select, 0));
        groups[row].count = integer_of(sqlite3_column_value(select, 1));
        groups[row].sum = integer_of(sqlite3_column_value(select, 2));
        groups[row++].mean = real_of(sqlite3_column_value(select, 3));
    }
    if (code != SQLITE_DONE) floor_fail("group");
    sqlite3_reset(select);
    floor_commit();
    bench_stop();
    bench_check read = {0};
    for (int64_t i = 0; i < row; i++) {
        bench_check_integer(&read, groups[i].parent);
        bench_check_integer(&read, groups[i].count);
        bench_check_integer(&read, groups[i].sum);
        bench_check_real(&read, groups[i].mean);
        bench_check_end_row(&read);
    }
    free(groups);
    return read;
}

void floor_references(bench_arguments arguments) {
    int64_t count = arguments.rows;
    bench_remove(arguments.path);
    floor_open(arguments, true);
    fill(count);
    floor_close();
    floor_open(arguments, false);
    sqlite3_stmt *joined = floor_prepare(
        "SELECT child.id, child.parent, child.name, child.size, parent.id, parent.name, parent.isWanted "
        "FROM child LEFT JOIN parent ON parent.id = child.parent");
    sqlite3_stmt *parents = floor_prepare("SELECT id, name, isWanted FROM parent WHERE isWanted = 1 ORDER BY id");
    sqlite3_stmt *included = floor_prepare(
        "SELECT child.id, child.parent, child.name, child.size FROM parent CROSS JOIN child ON child.parent = parent.id "
        "WHERE parent.isWanted = 1 ORDER BY parent.id");
    sqlite3_stmt *grouped = floor_prepare(
        "SELECT parent, count(*), sum(size), avg(size) FROM child WHERE parent IS NOT NULL GROUP BY parent");
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_check read = bench_is(arguments, "refs-left")  ? join(joined, count)
                           : bench_is(arguments, "refs-all") ? include(parents, included, count)
                                                             : group(grouped, count);
        // The driver compares the sums of the systems.
        bench_sample((double)count, read, read);
    }
    sqlite3_finalize(joined), sqlite3_finalize(parents), sqlite3_finalize(included), sqlite3_finalize(grouped);
    floor_close();
}
