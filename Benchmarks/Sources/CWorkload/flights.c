// The file that Scripts/flights fetches: flights from New York in 2013. It has no quotes.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload.h"

const char *const bench_create_flight =
    "CREATE TABLE flight (id INTEGER PRIMARY KEY NOT NULL, year INTEGER NOT NULL, month INTEGER NOT NULL, "
    "day INTEGER NOT NULL, departure INTEGER, scheduledDeparture INTEGER NOT NULL, departureDelay INTEGER, "
    "arrival INTEGER, scheduledArrival INTEGER NOT NULL, arrivalDelay INTEGER, carrier TEXT NOT NULL, "
    "flight INTEGER NOT NULL, tailNumber TEXT, origin TEXT NOT NULL, destination TEXT NOT NULL, airTime INTEGER, "
    "distance INTEGER NOT NULL, hour INTEGER NOT NULL, minute INTEGER NOT NULL, scheduled REAL NOT NULL);"
    "CREATE INDEX flight_carrier ON flight (carrier);"
    "CREATE INDEX flight_origin ON flight (origin);";

// MARK: Reading

/// The content of the file with a NUL behind it.
static char *contents(const char *path) {
    int64_t count = path == NULL ? 0 : bench_file_bytes(path);
    FILE *file = count == 0 ? NULL : fopen(path, "rb");
    if (file == NULL) bench_fail("flights", "COFFER_FLIGHTS has to name the file that Scripts/flights fetches");
    char *bytes = malloc((size_t)count + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)count, file) != (size_t)count) bench_fail(path, "cannot be read");
    bytes[count] = 0;
    fclose(file);
    return bytes;
}

/// The text before the next comma or end of line; moves `*at` behind that.
static bench_bytes text(const char **at) {
    bench_bytes cell = {*at, (int32_t)strcspn(*at, ",\n")};
    *at += cell.count + ((*at)[cell.count] != 0);
    return cell;
}

static bool is_unknown(bench_bytes cell) { return cell.count == 2 && memcmp(cell.bytes, "NA", 2) == 0; }

static bench_bytes known_text(const char **at) {
    bench_bytes cell = text(at);
    return is_unknown(cell) ? (bench_bytes){NULL, 0} : cell;
}

static int64_t known(const char **at) {
    bench_bytes cell = text(at);
    if (is_unknown(cell)) return bench_unknown;
    char *end;
    int64_t value = strtoll(cell.bytes, &end, 10);
    if (end == cell.bytes || end != cell.bytes + cell.count) bench_fail("flights", "no number");
    return value;
}

static int64_t number(const char **at) {
    int64_t value = known(at);
    if (value == bench_unknown) bench_fail("flights", "NA where there has to be a number");
    return value;
}

static double seconds(const char **at) {
    // A copy, because sscanf looks for the end of its whole input.
    char date[32];
    bench_bytes cell = text(at);
    snprintf(date, sizeof date, "%.*s", cell.count, cell.bytes);
    struct tm time = {0};
    if (sscanf(date, "%d-%d-%dT%d:%d:%dZ", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour, &time.tm_min,
               &time.tm_sec) != 6) {
        bench_fail("flights", "no date");
    }
    time.tm_year -= 1900, time.tm_mon -= 1;
    return (double)timegm(&time);
}

static bench_flight flight(int64_t id, const char **at) {
    bench_flight flight = {.id = id, .year = number(at)};
    flight.month = number(at), flight.day = number(at);
    flight.departure = known(at), flight.scheduledDeparture = number(at), flight.departureDelay = known(at);
    flight.arrival = known(at), flight.scheduledArrival = number(at), flight.arrivalDelay = known(at);
    flight.carrier = text(at), flight.flight = number(at), flight.tailNumber = known_text(at);
    flight.origin = text(at), flight.destination = text(at);
    flight.airTime = known(at), flight.distance = number(at);
    flight.hour = number(at), flight.minute = number(at), flight.scheduled = seconds(at);
    return flight;
}

const bench_flight *bench_flights_read(int64_t count) {
    const char *at = contents(getenv("COFFER_FLIGHTS"));
    bench_flight *flights = malloc((size_t)count * sizeof *flights);
    if (flights == NULL) bench_fail("memory", "none left");
    at += strcspn(at, "\n") + 1;
    for (int64_t i = 0; i < count; i++) {
        if (*at == 0) bench_fail("flights", "the file has fewer rows");
        flights[i] = flight(i + 1, &at);
    }
    return flights;
}

// MARK: Checks

static void check_known(bench_check *check, int64_t value) {
    if (value == bench_unknown) {
        bench_check_null(check);
    } else {
        bench_check_integer(check, value);
    }
}

static void check_text(bench_check *check, bench_bytes text) {
    if (text.bytes == NULL) {
        bench_check_null(check);
    } else {
        bench_check_bytes(check, text.bytes, text.count);
    }
}

void bench_check_flight(bench_check *check, const bench_flight *flight) {
    bench_check_integer(check, flight->id);
    bench_check_integer(check, flight->year);
    bench_check_integer(check, flight->month);
    bench_check_integer(check, flight->day);
    check_known(check, flight->departure);
    bench_check_integer(check, flight->scheduledDeparture);
    check_known(check, flight->departureDelay);
    check_known(check, flight->arrival);
    bench_check_integer(check, flight->scheduledArrival);
    check_known(check, flight->arrivalDelay);
    check_text(check, flight->carrier);
    bench_check_integer(check, flight->flight);
    check_text(check, flight->tailNumber);
    check_text(check, flight->origin);
    check_text(check, flight->destination);
    check_known(check, flight->airTime);
    bench_check_integer(check, flight->distance);
    bench_check_integer(check, flight->hour);
    bench_check_integer(check, flight->minute);
    bench_check_real(check, flight->scheduled);
    bench_check_end_row(check);
}
