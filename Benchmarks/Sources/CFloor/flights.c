#include <stdlib.h>

#include "floor.h"

// The real table: inserted, fetched, and asked the questions of its documentation.

#define COLUMNS \
    "id, year, month, day, departure, scheduledDeparture, departureDelay, arrival, scheduledArrival, arrivalDelay, " \
    "carrier, flight, tailNumber, origin, destination, airTime, distance, hour, minute, scheduled"

// MARK: Rows

static inline int bind_known(sqlite3_stmt *statement, int place, int64_t value) {
    return value == bench_unknown ? sqlite3_bind_null(statement, place) : sqlite3_bind_int64(statement, place, value);
}

static inline int bind_text(sqlite3_stmt *statement, int place, bench_bytes text) {
    // A null pointer binds NULL.
    return sqlite3_bind_text(statement, place, text.bytes, text.count, SQLITE_STATIC);
}

static inline void bind_all(sqlite3_stmt *statement, const bench_flight *flight) {
    int code = sqlite3_bind_int64(statement, 1, flight->id);
    code |= sqlite3_bind_int64(statement, 2, flight->year);
    code |= sqlite3_bind_int64(statement, 3, flight->month);
    code |= sqlite3_bind_int64(statement, 4, flight->day);
    code |= bind_known(statement, 5, flight->departure);
    code |= sqlite3_bind_int64(statement, 6, flight->scheduledDeparture);
    code |= bind_known(statement, 7, flight->departureDelay);
    code |= bind_known(statement, 8, flight->arrival);
    code |= sqlite3_bind_int64(statement, 9, flight->scheduledArrival);
    code |= bind_known(statement, 10, flight->arrivalDelay);
    code |= bind_text(statement, 11, flight->carrier);
    code |= sqlite3_bind_int64(statement, 12, flight->flight);
    code |= bind_text(statement, 13, flight->tailNumber);
    code |= bind_text(statement, 14, flight->origin);
    code |= bind_text(statement, 15, flight->destination);
    code |= bind_known(statement, 16, flight->airTime);
    code |= sqlite3_bind_int64(statement, 17, flight->distance);
    code |= sqlite3_bind_int64(statement, 18, flight->hour);
    code |= sqlite3_bind_int64(statement, 19, flight->minute);
    code |= sqlite3_bind_double(statement, 20, flight->scheduled);
    if (code != SQLITE_OK) floor_fail("bind");
}

static void insert_all(sqlite3_stmt *statement, const bench_flight *flights, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        bind_all(statement, flights + i);
        if (sqlite3_step(statement) != SQLITE_DONE) floor_fail("insert");
        sqlite3_reset(statement);
    }
}

static inline int64_t integer_at(sqlite3_stmt *statement, int column) {
    return integer_of(sqlite3_column_value(statement, column));
}

static inline int64_t known_at(sqlite3_stmt *statement, int column) {
    sqlite3_value *value = sqlite3_column_value(statement, column);
    return sqlite3_value_type(value) == SQLITE_NULL ? bench_unknown : integer_of(value);
}

/// Its texts are one block, which begins with the carrier.
static inline void read_all(sqlite3_stmt *statement, bench_flight *flight) {
    flight->id = integer_at(statement, 0);
    flight->year = integer_at(statement, 1);
    flight->month = integer_at(statement, 2);
    flight->day = integer_at(statement, 3);
    flight->departure = known_at(statement, 4);
    flight->scheduledDeparture = integer_at(statement, 5);
    flight->departureDelay = known_at(statement, 6);
    flight->arrival = known_at(statement, 7);
    flight->scheduledArrival = integer_at(statement, 8);
    flight->arrivalDelay = known_at(statement, 9);
    bench_bytes carrier = text_of(sqlite3_column_value(statement, 10));
    flight->flight = integer_at(statement, 11);
    sqlite3_value *tail = sqlite3_column_value(statement, 12);
    bench_bytes tail_number = sqlite3_value_type(tail) == SQLITE_NULL ? (bench_bytes){NULL, 0} : text_of(tail);
    bench_bytes origin = text_of(sqlite3_column_value(statement, 13));
    bench_bytes destination = text_of(sqlite3_column_value(statement, 14));
    flight->airTime = known_at(statement, 15);
    flight->distance = integer_at(statement, 16);
    flight->hour = integer_at(statement, 17);
    flight->minute = integer_at(statement, 18);
    flight->scheduled = real_of(sqlite3_column_value(statement, 19));
    size_t total = (size_t)carrier.count + (size_t)tail_number.count + (size_t)origin.count + (size_t)destination.count;
    char *end = malloc(total > 0 ? total : 1);
    if (end == NULL) bench_fail("memory", "none left");
    flight->carrier = copied(&end, carrier);
    flight->tailNumber = tail_number.bytes == NULL ? tail_number : copied(&end, tail_number);
    flight->origin = copied(&end, origin);
    flight->destination = copied(&end, destination);
}

static bench_flight *fetch(sqlite3_stmt *statement, int64_t *count) {
    int64_t room = 16, found = 0;
    bench_flight *flights = malloc((size_t)room * sizeof *flights);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (found == room) flights = realloc(flights, (size_t)(room *= 2) * sizeof *flights);
        if (flights == NULL) bench_fail("memory", "none left");
        read_all(statement, flights + found++);
    }
    if (code != SQLITE_DONE) floor_fail("fetch");
    sqlite3_reset(statement);
    *count = found;
    return flights;
}

static void release_all(bench_flight *flights, int64_t count) {
    for (int64_t i = 0; i < count; i++) free((void *)flights[i].carrier.bytes);
    free(flights);
}

static bench_check sum_of(const bench_flight *flights, int64_t count) {
    bench_check check = {0};
    for (int64_t i = 0; i < count; i++) bench_check_flight(&check, flights + i);
    return check;
}

// MARK: Questions

/// The questions that Swift asks by key path in Examples/Flights, in SQL as one writes it by hand.
static const char *const questions[] = {
    "SELECT count(*) FROM flight WHERE month = 1 AND day = 1",
    "SELECT count(*) FROM flight WHERE arrivalDelay > 120",
    "SELECT count(*) FROM flight WHERE arrivalDelay > 120 AND departureDelay <= 0",
    "SELECT count(*) FROM flight WHERE destination IN ('IAH', 'HOU') AND carrier IN ('UA', 'AA', 'DL') "
    "AND month BETWEEN 7 AND 9",
    "SELECT count(*) FROM flight WHERE departure IS NULL",
    "SELECT count(*) FROM flight WHERE airTime IS NULL",
    "SELECT avg(departureDelay), min(departureDelay), max(departureDelay) FROM flight",
    "SELECT origin, sum(distance) FROM flight GROUP BY origin ORDER BY origin",
    "SELECT carrier, count(*) FROM flight GROUP BY carrier ORDER BY carrier",
    "SELECT carrier, avg(arrivalDelay) FROM flight GROUP BY carrier ORDER BY carrier",
    "SELECT carrier, flight, departureDelay FROM flight ORDER BY departureDelay DESC, carrier, flight LIMIT 10",
    "SELECT count(DISTINCT tailNumber) FROM flight",
    "SELECT count(*) FROM flight WHERE tailNumber >= 'N9' AND tailNumber < 'N:'",
};

enum { question_count = sizeof questions / sizeof *questions, answers_max = 256 };

/// A number, or a text if it has bytes.
typedef struct {
    double number;
    bench_bytes text;
} answer;

static answer answer_of(sqlite3_value *value) {
    int type = sqlite3_value_type(value);
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) return (answer){.number = sqlite3_value_double(value)};
    bench_bytes text = text_of(value);
    char *end = malloc(text.count > 0 ? (size_t)text.count : 1);
    if (end == NULL) bench_fail("memory", "none left");
    return (answer){.text = copied(&end, text)};
}

/// Appends a question's rows to the answers; returns the new number of answers.
static int ask(sqlite3_stmt *question, answer *answers, int count) {
    int code;
    while ((code = sqlite3_step(question)) == SQLITE_ROW) {
        for (int column = 0; column < sqlite3_column_count(question); column++) {
            if (count == answers_max) bench_fail("questions", "more answers than there is room for");
            answers[count++] = answer_of(sqlite3_column_value(question, column));
        }
    }
    if (code != SQLITE_DONE) floor_fail("ask");
    sqlite3_reset(question);
    return count;
}

static bench_check time_questions(sqlite3_stmt **prepared) {
    bench_check read = {0};
    answer answers[answers_max];
    int count = 0;
    bench_start();
    floor_begin();
    for (int i = 0; i < question_count; i++) count = ask(prepared[i], answers, count);
    floor_commit();
    bench_stop();
    for (int i = 0; i < count; i++) {
        if (answers[i].text.bytes == NULL) {
            bench_check_real(&read, answers[i].number);
        } else {
            bench_check_bytes(&read, answers[i].text.bytes, answers[i].text.count);
        }
    }
    bench_check_end_row(&read);
    bench_start();
    for (int i = 0; i < count; i++) free((void *)answers[i].text.bytes);
    bench_stop();
    return read;
}

// MARK: flights-import, flights-fetch, flights-questions

static void open_new(bench_arguments arguments) {
    bench_remove(arguments.path);
    floor_open(arguments, false);
    floor_run(bench_create_flight);
}

static sqlite3_stmt *prepare_insert(void) {
    return floor_prepare("INSERT INTO flight (" COLUMNS ") VALUES "
                         "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)");
}

static sqlite3_stmt *prepare_select(void) { return floor_prepare("SELECT " COLUMNS " FROM flight"); }

static void import(bench_arguments arguments, const bench_flight *flights, bench_check written) {
    for (int64_t i = 0; i < arguments.repeats; i++) {
        open_new(arguments);
        sqlite3_stmt *insert = prepare_insert(), *select = prepare_select();
        floor_begin();
        insert_all(insert, flights, 1);
        floor_run("DELETE FROM flight");
        floor_commit();
        bench_start();
        floor_begin();
        insert_all(insert, flights, arguments.rows);
        floor_commit();
        bench_stop();
        int64_t count;
        bench_flight *found = fetch(select, &count);
        bench_sample((double)arguments.rows, written, sum_of(found, count));
        release_all(found, count);
        sqlite3_finalize(insert), sqlite3_finalize(select);
        floor_close();
    }
}

static void fill(bench_arguments arguments, const bench_flight *flights) {
    open_new(arguments);
    sqlite3_stmt *insert = prepare_insert();
    floor_begin();
    insert_all(insert, flights, arguments.rows);
    floor_commit();
    sqlite3_finalize(insert);
    floor_close();
}

static bench_check time_fetch(sqlite3_stmt *select) {
    int64_t count;
    bench_start();
    floor_begin();
    bench_flight *found = fetch(select, &count);
    floor_commit();
    bench_stop();
    bench_check read = sum_of(found, count);
    bench_start();
    release_all(found, count);
    bench_stop();
    return read;
}

void floor_flights(bench_arguments arguments) {
    const bench_flight *flights = bench_flights_read(arguments.rows);
    bench_check written = sum_of(flights, arguments.rows);
    if (bench_is(arguments, "flights-import")) return import(arguments, flights, written);
    fill(arguments, flights);
    floor_open(arguments, false);
    sqlite3_stmt *select = prepare_select(), *prepared[question_count];
    for (int i = 0; i < question_count; i++) prepared[i] = floor_prepare(questions[i]);
    bool is_fetch = bench_is(arguments, "flights-fetch");
    for (int64_t i = 0; i <= arguments.repeats; i++) {
        bench_warm(i == 0);
        bench_check read = is_fetch ? time_fetch(select) : time_questions(prepared);
        // The driver compares the answers with those of other systems.
        bench_sample((double)arguments.rows, is_fetch ? written : read, read);
    }
    sqlite3_finalize(select);
    for (int i = 0; i < question_count; i++) sqlite3_finalize(prepared[i]);
    floor_close();
}
