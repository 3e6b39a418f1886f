"""The program of the plaintext twin: commits one row after the other, as bench-replica does.

Run as `twin.py PATH ROWS` by replica.py, with an order a line, and an answer a line. A process of its own: libsqlite3
and libsqlcipher must not be in one."""

import json
import sqlite3
import sys
import time

# As RowWriter.swift.
STRIDE = 7919


def main(path, rows):
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ["journal_mode=WAL", "synchronous=FULL", "cache_size=-64000"]:
        connection.execute(f"PRAGMA {setting}").fetchall()
    index = 0
    for line in sys.stdin:
        order = json.loads(line)
        latencies, end = [], time.monotonic() + order.get("seconds", 1e9)
        while len(latencies) < order.get("count", 1e9) and time.monotonic() < end:
            start = time.perf_counter()
            connection.execute("UPDATE item SET x = x + 1 WHERE id = ?", (1 + index * STRIDE % rows,))
            latencies.append(round((time.perf_counter() - start) * 1e6, 1))
            index += 1
        print(json.dumps({"latencies_us": latencies}), flush=True)
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
