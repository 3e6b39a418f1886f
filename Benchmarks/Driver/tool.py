"""The start-up of the tool `coffer`, in instructions: no workload of the library runs in it."""

import re
import subprocess

from systems import ROOT, say

KEY = "00" * 31 + "01"
# A name, and the arguments; {store} has one table, and {key} is its key.
RUNS = {
    "version": ["--version"],
    "status": ["status", "{store}"],
    "status-key": ["status", "{store}", "--raw-key-file", "{key}"],
}
TOLERANCE = 0.05


def count(engine):
    """Millions of instructions of each run, of the tool as it is installed: with Swift's libraries inside."""
    folder = engine.scratch / "tool"
    say(f"building the tool for SQLCipher {engine.version}")
    engine.run(["swift", "build", "--quiet", "-c", "release", "--static-swift-stdlib", "--package-path", str(ROOT),
                "--scratch-path", str(folder), "--product", "coffer"])
    tool = engine.scratch / "coffer.counted"
    engine.run(["strip", "-o", str(tool), str(folder / "release/coffer")])
    store, key = engine.stores / "tool.db", engine.stores / "tool.key"
    for path in [store, key]:
        path.unlink(missing_ok=True)
    key.write_text(KEY)
    key.chmod(0o600)
    engine.run([str(tool), "init", str(store), "--raw-key-file", str(key), "--quiet"])
    engine.run([str(tool), "sql", str(store), "CREATE TABLE note(id INTEGER PRIMARY KEY, body)", "--write", "--quiet",
                "--raw-key-file", str(key)])
    return {name: counted(engine, [str(tool)] + [part.format(store=store, key=key) for part in arguments])
            for name, arguments in RUNS.items()}


def counted(engine, command):
    result = engine.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return round(int(re.search(r"Collected : (\d+)", result.stderr)[1]) / 1e6, 1)


def check(engine, found, known):
    """How many counts are worse than recorded by more than the tolerance, or not recorded."""
    failures = 0
    for name, number in found.items():
        threshold = known.get(name)
        if threshold is None:
            verdict, failures = "NOT RECORDED", failures + 1
        elif number > threshold * (1 + TOLERANCE):
            verdict, failures = "WORSE", failures + 1
        else:
            verdict = "better: record it" if number < threshold * (1 - TOLERANCE) else "as recorded"
        print(f"{engine.version:8} tool {name:12} {number:8.1f} million, threshold {threshold or '-':>8}  {verdict}")
    return failures
