"""Where the instructions above plain C go, by cause, from what callgrind left in the scratch folder."""

import collections
import re
import subprocess

from systems import COUNTED, COUNTED_ROWS, OWN, WORKLOADS

# The first pattern that fits "object:function" names the cause.
CAUSES = [
    ("comparing bytes, SQL texts", r"bench-coffer.*elementsEqual"),
    ("Coffer's own code", r"bench-coffer"),
    ("malloc and free", r"libc\.so.*(malloc|free|calloc|unlink_chunk)"),
    ("mutexes", r"libc\.so.*mutex"),
    ("reference counts and boxes", r"libswiftCore.*([Rr]etain|[Rr]elease|RefCount|alloc)"),
    ("exclusivity checks", r"libswiftCore.*(beginAccess|endAccess|AccessSet)"),
    ("casts and metadata", r"libswiftCore.*(Cast|onform|AssociatedType|Witness|Metadata)"),
    ("Codable containers", r"libswiftCore.*Keyed"),
    ("hashing", r"libswiftCore.*[Hh]ash"),
    ("Swift strings", r"libswiftCore.*(String|UTF8|ASCII)"),
    ("rest of the Swift library", r"libswiftCore|libFoundation"),
    ("cryptography", r"libcrypto"),
    ("SQLCipher", r"libsqlcipher"),
]
LINE = re.compile(r"\s*([\d,]+) \([^)]*\)\s+(.*?)(?: \[(.*)\])?$")


def by_cause(path):
    text = subprocess.run(["callgrind_annotate", "--threshold=100", str(path)], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    counts = collections.Counter()
    for line in text.splitlines():
        found = LINE.match(line)
        if found and "PROGRAM TOTALS" not in line:
            place = f"{(found[3] or '').split('/')[-1]}:{found[2].split(':', 1)[-1]}"
            cause = next((name for name, pattern in CAUSES if re.search(pattern, place)), "rest")
            counts[cause] += int(found[1].replace(",", ""))
    return counts


def show(engine):
    for workload in COUNTED:
        floor = by_cause(engine.scratch / f"callgrind-{workload}-c-sqlcipher.out")
        for system in [name for name in OWN if name.startswith("coffer") and workload in WORKLOADS[name]]:
            found = by_cause(engine.scratch / f"callgrind-{workload}-{system}.out")
            extra = sum(found.values()) - sum(floor.values())
            print(f"{engine.version} {workload} {system}: {extra / COUNTED_ROWS:.0f} instructions a row above plain C")
            causes = {name: found[name] - floor[name] for name in set(found) | set(floor)}
            for name, count in sorted(causes.items(), key=lambda cause: -cause[1]):
                if count / COUNTED_ROWS >= 20:
                    print(f"    {name:28} {count / COUNTED_ROWS:8.0f}  {count / extra:4.0%}")
