// FMDB from a checkout, on SQLCipher: W1 to W5. Statements are cached, arguments are passed in the
// call, columns are read by position.
//
// On Linux its runtime is GNUstep, whose boxing and autorelease pools are not Apple's. Each pool
// here holds the objects of 64 rows.

#import <Foundation/Foundation.h>

#import "FMDatabase.h"
#import "FMDatabase+SQLCipher.h"
#include "workload.h"

enum { rows_of_pool = 64 };

#define TEXT_OF(words) #words
#define TEXT(macro) TEXT_OF(macro)
#define BENCH_RUNTIME "GNUstep Base " TEXT(GNUSTEP_BASE_VERSION) " with GCC's Objective-C runtime"

// MARK: Values

/// A row as an object, with the types that FMDB reads and binds.
@interface BenchItem : NSObject {
  @public
    int64_t identifier;
    NSString *name, *url, *kind;
    double x, y;
    NSDate *created;
    BOOL flag;
    NSString *note;
    NSData *data;
}
@end

@implementation BenchItem

- (void)dealloc {
    [name release];
    [url release];
    [kind release];
    [created release];
    [note release];
    [data release];
    [super dealloc];
}

@end

static NSString *string_of(bench_bytes bytes) {
    return [[NSString alloc] initWithBytes:bytes.bytes length:(NSUInteger)bytes.count encoding:NSUTF8StringEncoding];
}

static BenchItem *item_of(const bench_record *record) {
    BenchItem *item = [[BenchItem alloc] init];
    item->identifier = record->id;
    item->name = string_of(record->name);
    item->url = string_of(record->url);
    item->kind = string_of(record->kind);
    item->x = record->x;
    item->y = record->y;
    item->created = [[NSDate alloc] initWithTimeIntervalSince1970:record->created];
    item->flag = record->flag;
    item->note = record->note.bytes == NULL ? nil : string_of(record->note);
    item->data = [[NSData alloc] initWithBytes:record->data.bytes length:(NSUInteger)record->data.count];
    return item;
}

/// The items `first` to `first + count - 1`.
static NSArray *items_make(int64_t first, int64_t count, int32_t version) {
    NSMutableArray *items = [[NSMutableArray alloc] initWithCapacity:(NSUInteger)count];
    bench_record *records = bench_records_make(first, count, version);
    for (int64_t i = 0; i < count; i++) {
        BenchItem *item = item_of(records + i);
        [items addObject:item];
        [item release];
    }
    bench_records_free(records, count);
    return items;
}

static void add_text(bench_check *check, NSString *text) {
    bench_check_bytes(check, [text UTF8String], (int64_t)[text lengthOfBytesUsingEncoding:NSUTF8StringEncoding]);
}

static void add_data(bench_check *check, NSData *data) { bench_check_bytes(check, [data bytes], (int64_t)[data length]); }

static void add_item(bench_check *check, BenchItem *item) {
    bench_check_integer(check, item->identifier);
    add_text(check, item->name);
    add_text(check, item->url);
    add_text(check, item->kind);
    bench_check_real(check, item->x);
    bench_check_real(check, item->y);
    bench_check_real(check, [item->created timeIntervalSince1970]);
    bench_check_integer(check, item->flag ? 1 : 0);
    if (item->note == nil) {
        bench_check_null(check);
    } else {
        add_text(check, item->note);
    }
    add_data(check, item->data);
    bench_check_end_row(check);
}

static bench_check sum(NSArray *items) {
    bench_check check = {0};
    @autoreleasepool {
        for (BenchItem *item in items) add_item(&check, item);
    }
    return check;
}

// MARK: The store

static FMDatabase *db;

static void fail(const char *what) { bench_fail(what, [[db lastErrorMessage] UTF8String]); }

static void run(NSString *sql) {
    if (![db executeStatements:sql]) fail([sql UTF8String]);
}

static void describe(NSString *key, NSString *sql) {
    FMResultSet *rows = [db executeQuery:sql];
    if ([rows next]) bench_describe([key UTF8String], [[rows stringForColumnIndex:0] UTF8String]);
    [rows close];
}

static void open_store(bench_arguments arguments, bool is_new) {
    if (is_new) bench_remove(arguments.path);
    @autoreleasepool {
        db = [[FMDatabase alloc] initWithPath:[NSString stringWithUTF8String:arguments.path]];
        NSMutableString *key = [NSMutableString stringWithString:@"x'"];
        for (int i = 0; i < 48; i++) [key appendFormat:@"%02x", bench_key[i]];
        [key appendString:@"'"];
        if (![db open] || ![db setKey:key]) fail("open");
        [db setShouldCacheStatements:YES];
        // SQLCipher 3 makes pages of 1024 bytes; all systems use 4096.
        run(@"PRAGMA cipher_page_size = 4096");
        run(@"PRAGMA temp_store = MEMORY");
        run([NSString stringWithFormat:@"PRAGMA cache_size = -%lld", (long long)arguments.cache_kib]);
        run(@"PRAGMA foreign_keys = ON");
        run(@"PRAGMA journal_mode = WAL");
        run(arguments.full_sync ? @"PRAGMA synchronous = FULL" : @"PRAGMA synchronous = NORMAL");
        if (is_new) {
            run(@BENCH_CREATE_ITEM);
            run(@BENCH_CREATE_ENTRY);
        }
        describe(@"sqlite_version", @"SELECT sqlite_version()");
        for (NSString *name in [@"cipher_version page_size cache_size journal_mode synchronous temp_store"
                 componentsSeparatedByString:@" "]) {
            describe(name, [@"PRAGMA " stringByAppendingString:name]);
        }
    }
}

static void close_store(void) {
    @autoreleasepool {
        if (![db close]) fail("close");
        [db release];
        db = nil;
    }
}

static void begin(bool is_writing) {
    if (is_writing ? ![db beginImmediateTransaction] : ![db beginDeferredTransaction]) fail("begin");
}

static void commit(void) {
    if (![db commit]) fail("commit");
}

// MARK: W1 to W4

static NSString *const insert_sql =
    @"INSERT INTO item (id, name, url, kind, x, y, created, flag, note, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static NSString *const update_sql =
    @"UPDATE OR FAIL item SET name = ?, url = ?, kind = ?, x = ?, y = ?, created = ?, flag = ?, note = ?, data = ? "
    @"WHERE id = ?";
static NSString *const select_sql = @"SELECT id, name, url, kind, x, y, created, flag, note, data FROM item";
static NSString *const find_sql =
    @"SELECT id, name, url, kind, x, y, created, flag, note, data FROM item WHERE id = ?";

static void insert(BenchItem *item) {
    BOOL done = [db executeUpdate:insert_sql, [NSNumber numberWithLongLong:item->identifier], item->name, item->url,
                    item->kind, [NSNumber numberWithDouble:item->x], [NSNumber numberWithDouble:item->y], item->created,
                    [NSNumber numberWithBool:item->flag], item->note != nil ? (id)item->note : (id)[NSNull null],
                    item->data];
    if (!done) fail("insert");
}

static void update(BenchItem *item) {
    BOOL done = [db executeUpdate:update_sql, item->name, item->url, item->kind, [NSNumber numberWithDouble:item->x],
                    [NSNumber numberWithDouble:item->y], item->created, [NSNumber numberWithBool:item->flag],
                    item->note != nil ? (id)item->note : (id)[NSNull null], item->data,
                    [NSNumber numberWithLongLong:item->identifier]];
    if (!done) fail("update");
    if ([db changes] != 1) bench_fail("update", "no such row");
}

/// The caller owns the item.
static BenchItem *read_item(FMResultSet *rows) {
    BenchItem *item = [[BenchItem alloc] init];
    item->identifier = [rows longLongIntForColumnIndex:0];
    item->name = [[rows stringForColumnIndex:1] retain];
    item->url = [[rows stringForColumnIndex:2] retain];
    item->kind = [[rows stringForColumnIndex:3] retain];
    item->x = [rows doubleForColumnIndex:4];
    item->y = [rows doubleForColumnIndex:5];
    item->created = [[rows dateForColumnIndex:6] retain];
    item->flag = [rows boolForColumnIndex:7];
    item->note = [[rows stringForColumnIndex:8] retain];
    item->data = [[rows dataForColumnIndex:9] retain];
    return item;
}

static void add_row(NSMutableArray *items, FMResultSet *rows) {
    BenchItem *item = read_item(rows);
    [items addObject:item];
    [item release];
}

/// The caller owns the array.
static NSMutableArray *fetch_all(void) {
    NSMutableArray *items = [[NSMutableArray alloc] init];
    @autoreleasepool {
        begin(false);
        FMResultSet *rows = [db executeQuery:select_sql];
        if (rows == nil) fail("fetch");
        bool is_more = true;
        while (is_more) {
            @autoreleasepool {
                for (int i = 0; i < rows_of_pool && (is_more = [rows next]); i++) add_row(items, rows);
            }
        }
        [rows close];
        commit();
    }
    return items;
}

/// The caller owns the array.
static NSMutableArray *find_all(int64_t count) {
    NSMutableArray *items = [[NSMutableArray alloc] initWithCapacity:(NSUInteger)count];
    @autoreleasepool {
        begin(false);
        for (int64_t first = 0; first < count; first += rows_of_pool) {
            @autoreleasepool {
                for (int64_t i = first; i < count && i < first + rows_of_pool; i++) {
                    NSNumber *key = [NSNumber numberWithLongLong:bench_shuffled(i, count) + 1];
                    FMResultSet *rows = [db executeQuery:find_sql, key];
                    if (![rows next]) fail("find");
                    add_row(items, rows);
                    [rows close];
                }
            }
        }
        commit();
    }
    return items;
}

/// Inserts all items in their order, or updates all without order.
static void write_all(NSArray *items, bool is_update) {
    @autoreleasepool {
        begin(true);
        int64_t count = (int64_t)[items count];
        for (int64_t first = 0; first < count; first += rows_of_pool) {
            @autoreleasepool {
                for (int64_t i = first; i < count && i < first + rows_of_pool; i++) {
                    int64_t place = is_update ? bench_shuffled(i, count) : i;
                    BenchItem *item = [items objectAtIndex:(NSUInteger)place];
                    is_update ? update(item) : insert(item);
                }
            }
        }
        commit();
    }
}

static void take_writes(bench_arguments arguments) {
    bool is_update = bench_is(arguments, "W4");
    NSArray *before = items_make(1, is_update ? arguments.rows : 1, 1), *after = items_make(1, arguments.rows, 2);
    bench_check written = sum(after);
    for (int64_t i = 0; i < arguments.repeats; i++) {
        open_store(arguments, true);
        write_all(before, false);
        @autoreleasepool {
            update([before objectAtIndex:0]);
            if (!is_update) run(@"DELETE FROM item");
        }
        bench_start();
        write_all(after, is_update);
        bench_stop();
        NSArray *read = fetch_all();
        bench_sample((double)arguments.rows, written, sum(read));
        [read release];
        close_store();
    }
    [before release];
    [after release];
}

static bench_check sum_of_finds(NSArray *items, int64_t count) {
    bench_check check = {0};
    @autoreleasepool {
        for (int64_t i = 0; i < count; i++) {
            bench_check_integer(&check, bench_shuffled(i, count) + 1);
            add_item(&check, [items objectAtIndex:(NSUInteger)i]);
        }
    }
    return check;
}

static void take_reads(bench_arguments arguments) {
    bool is_find = bench_is(arguments, "W3");
    NSArray *items = items_make(1, arguments.rows, 1);
    bench_check written = sum(items);
    open_store(arguments, true);
    write_all(items, false);
    close_store();
    if (is_find) {
        NSMutableArray *asked = [[NSMutableArray alloc] init];
        for (int64_t i = 0; i < arguments.rows; i++) {
            [asked addObject:[items objectAtIndex:(NSUInteger)bench_shuffled(i, arguments.rows)]];
        }
        written = sum_of_finds(asked, arguments.rows);
        [asked release];
    }
    [items release];
    open_store(arguments, false);
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_start();
        NSArray *found = is_find ? find_all(arguments.rows) : fetch_all();
        bench_stop();
        bench_check read = is_find ? sum_of_finds(found, arguments.rows) : sum(found);
        bench_start();
        [found release];
        bench_stop();
        bench_sample((double)arguments.rows, written, read);
    }
    close_store();
}

// MARK: W5

// As in the floor: INSERT OR REPLACE costs SQLCipher 3.4.1 an encrypted statement journal.
static NSString *const put_new_sql = @"INSERT OR IGNORE INTO entry (key, value) VALUES (?, ?)";
static NSString *const put_again_sql = @"UPDATE OR FAIL entry SET value = ? WHERE key = ?";
static NSString *const get_sql = @"SELECT value FROM entry WHERE key = ?";

static void put(NSData *key, NSData *value) {
    if (![db executeUpdate:put_new_sql, key, value]) fail("put");
    if ([db changes] == 1) return;
    if (![db executeUpdate:put_again_sql, value, key]) fail("put");
    if ([db changes] != 1) bench_fail("put", "no such key");
}

static void put_all(NSArray *keys, NSArray *values) {
    @autoreleasepool {
        begin(true);
        NSUInteger count = [keys count];
        for (NSUInteger first = 0; first < count; first += rows_of_pool) {
            @autoreleasepool {
                for (NSUInteger i = first; i < count && i < first + rows_of_pool; i++) {
                    put([keys objectAtIndex:i], [values objectAtIndex:i]);
                }
            }
        }
        commit();
    }
}

/// The caller owns the array.
static NSMutableArray *get_all(NSArray *keys) {
    int64_t count = (int64_t)[keys count];
    NSMutableArray *values = [[NSMutableArray alloc] initWithCapacity:(NSUInteger)count];
    @autoreleasepool {
        begin(false);
        for (int64_t first = 0; first < count; first += rows_of_pool) {
            @autoreleasepool {
                for (int64_t i = first; i < count && i < first + rows_of_pool; i++) {
                    NSData *key = [keys objectAtIndex:(NSUInteger)bench_shuffled(i, count)];
                    FMResultSet *rows = [db executeQuery:get_sql, key];
                    if (![rows next]) fail("get");
                    [values addObject:[rows dataForColumnIndex:0]];
                    [rows close];
                }
            }
        }
        commit();
    }
    return values;
}

static bench_check sum_of_entries(NSArray *keys, NSArray *values) {
    bench_check check = {0};
    int64_t count = (int64_t)[values count];
    for (int64_t i = 0; i < count; i++) {
        add_data(&check, [keys objectAtIndex:(NSUInteger)bench_shuffled(i, count)]);
        add_data(&check, [values objectAtIndex:(NSUInteger)i]);
        bench_check_end_row(&check);
    }
    return check;
}

static void take_entries(bench_arguments arguments) {
    NSMutableArray *keys = [[NSMutableArray alloc] init], *values = [[NSMutableArray alloc] init];
    bench_entry *entries = bench_entries_make(arguments.rows, 1);
    bench_check written = {0};
    @autoreleasepool {
        for (int64_t i = 0; i < arguments.rows; i++) {
            bench_check_entry(&written, entries + i);
            [keys addObject:[NSData dataWithBytes:entries[i].key length:sizeof entries[i].key]];
            [values addObject:[NSData dataWithBytes:entries[i].value length:sizeof entries[i].value]];
        }
    }
    free(entries);
    bool is_put = bench_is(arguments, "W5-put");
    if (!is_put) {
        open_store(arguments, true);
        put_all(keys, values);
        close_store();
        open_store(arguments, false);
    }
    for (int64_t i = is_put; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        if (is_put) {
            open_store(arguments, true);
            @autoreleasepool {
                // A new key, and an existing one.
                put([keys objectAtIndex:0], [values objectAtIndex:0]);
                put([keys objectAtIndex:0], [values objectAtIndex:0]);
                run(@"DELETE FROM entry");
            }
            bench_start();
            put_all(keys, values);
            bench_stop();
        }
        if (!is_put) bench_start();
        NSArray *found = get_all(keys);
        if (!is_put) bench_stop();
        bench_check read = sum_of_entries(keys, found);
        if (!is_put) bench_start();
        [found release];
        if (!is_put) bench_stop();
        bench_sample((double)arguments.rows, written, read);
        if (is_put) close_store();
    }
    if (!is_put) close_store();
    [keys release];
    [values release];
}

int main(int count, char **words) {
    bench_arguments arguments = bench_parse(count, words);
    @autoreleasepool {
        bench_describe("fmdb_version", [[FMDatabase FMDBUserVersion] UTF8String]);
        bench_describe("runtime_version", BENCH_RUNTIME);
        if (bench_is(arguments, "W1") || bench_is(arguments, "W4")) {
            take_writes(arguments);
        } else if (bench_is(arguments, "W5-put") || bench_is(arguments, "W5-get")) {
            take_entries(arguments);
        } else {
            take_reads(arguments);
        }
    }
    return 0;
}
