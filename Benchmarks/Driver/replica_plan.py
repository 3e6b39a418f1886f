"""What both systems do, and how it is summed up."""

import shutil
import statistics
from pathlib import Path

# A megabyte, and a gigabyte, of W1's rows.
SMALL, ROWS_OF_GIGABYTE = 5000, 5_200_000
PAGE = 4096
# One-row commits of one pass, and of the time with and without a replica.
SHIPPED, SECONDS, ROUNDS = 1000, 5, 2
IDLE_SECONDS, FLEET, FLEET_SECONDS, PASSES = 10, 500, 5, 5


def summary(blocks):
    """Of commits with and without a replica, in µs."""
    found = {}
    for name, is_replicated in [("alone", False), ("replicated", True)]:
        calls = sorted(call for block in blocks if block["replicated"] == is_replicated for call in block["latencies_us"])
        found[name] = {"median": statistics.median(calls), "p99": calls[len(calls) * 99 // 100], "count": len(calls)}
    return found


def changed_pages(before, after):
    """How many pages differ between two closed stores, and those that only the second has."""
    count = 0
    with before.open("rb") as old, after.open("rb") as new:
        while page := new.read(PAGE):
            count += page != old.read(PAGE)
    return count


def size(folder):
    """Bytes of all files in it."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def remove(store):
    """With all files that belong to it."""
    for path in store.parent.glob(store.name + "*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
