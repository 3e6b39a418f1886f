#include <string.h>

#include "floor.h"

int main(int count, char **values) {
    bench_arguments arguments = bench_parse(count, values);
    // No memory statistics: a program that does not ask for them need not keep them.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    static const struct {
        const char *beginning;
        void (*run)(bench_arguments);
    } workloads[] = {
        {"W5", floor_entries},  {"W6-latency", floor_latency}, {"W6-beside", floor_queue},
        {"W6-set64", floor_entries}, {"sweep", floor_paced},
        {"W6", floor_durable},  {"read", floor_queue},         {"watch", floor_queue},
        {"idle", floor_queue},
        {"W", floor_records},   {"blob", floor_blobs},         {"open", floor_files},
        {"rekey", floor_files}, {"rotate", floor_files}, {"fleet", floor_files}, {"verify", floor_files},       {"compact", floor_compact},
        {"growth", floor_growth}, {"attach", floor_attachments},
        {"flights", floor_flights}, {"refs", floor_references},
    };
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (strncmp(arguments.workload, workloads[i].beginning, strlen(workloads[i].beginning)) == 0) {
            workloads[i].run(arguments);
            return 0;
        }
    }
    bench_fail("workload", arguments.workload);
}
