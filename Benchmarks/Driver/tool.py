"""The tool `coffer`: its start-up in instructions, where no workload of the library runs, and its import and export."""

import re
import subprocess

import exchange
from systems import ROOT, Skipped, say

KEY = "00" * 31 + "01"
# A name, and the arguments; {store} has one table, and {key} is its key.
RUNS = {
    "version": ["--version"],
    "status": ["status", "{store}"],
    "status-key": ["status", "{store}", "--raw-key-file", "{key}"],
}
TOLERANCE = 0.05
# The groups of figures in thresholds.json, and their units.
UNITS = {"tool": "million", "tool-to-shell": "x the instructions", "tool-memory": "x the field"}


def built(engine):
    """The path of the tool as it is installed, with Swift's libraries inside."""
    folder = engine.scratch / "tool"
    say(f"building the tool for SQLCipher {engine.version}")
    engine.run(["swift", "build", "--quiet", "-c", "release", "--static-swift-stdlib", "--package-path", str(ROOT),
                "--scratch-path", str(folder), "--product", "coffer"])
    return folder / "release/coffer"


def count(engine):
    """Figures of the tool as it is installed: by group, and by name."""
    program = built(engine)
    tool = engine.scratch / "coffer.counted"
    engine.run(["strip", "-o", str(tool), str(program)])
    store, key = engine.stores / "tool.db", engine.stores / "tool.key"
    for path in [store, key]:
        path.unlink(missing_ok=True)
    key.write_text(KEY)
    key.chmod(0o600)
    engine.run([str(tool), "init", str(store), "--raw-key-file", str(key), "--quiet"])
    engine.run([str(tool), "sql", str(store), "CREATE TABLE note(id INTEGER PRIMARY KEY, body)", "--write", "--quiet",
                "--raw-key-file", str(key)])
    starts = {name: counted(engine, [str(tool)] + [part.format(store=store, key=key) for part in arguments])
              for name, arguments in RUNS.items()}
    found = {"tool": starts, "tool-memory": exchange.memory(engine, tool, key)}
    try:
        found["tool-to-shell"] = exchange.ratios(engine, tool, key, counted)
    except Skipped as reason:
        say(f"the tool is not compared with the shell: {reason}")
    return found


def counted(engine, command, text=""):
    """Millions of instructions of a command that reads a text."""
    result = engine.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, input=text, text=True)
    return round(int(re.search(r"Collected : (\d+)", result.stderr)[1]) / 1e6, 1)


def check(engine, found, known):
    """How many figures are worse than recorded by more than the tolerance, or not recorded."""
    failures = 0
    for group, figures in found.items():
        for name, number in figures.items():
            threshold = known.get(group, {}).get(name)
            if threshold is None:
                verdict, failures = "NOT RECORDED", failures + 1
            elif number > threshold * (1 + TOLERANCE):
                verdict, failures = "WORSE", failures + 1
            else:
                verdict = "better: record it" if number < threshold * (1 - TOLERANCE) else "as recorded"
            print(f"{engine.version:8} tool {name:12} {number:8} {UNITS[group]}, threshold {threshold or '-':>8}  {verdict}")
    return failures
