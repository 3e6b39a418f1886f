"""Rotation of many stores by the tool `coffer`, two at once, beside bare rekeys one after another."""

import os
import shutil
import subprocess
import time

import measure
import tool
from systems import say

# A megabyte of W1.
ROWS = 3500
# The key that Workloads gives its stores: the first 32 bytes of bench_key.
KEY = bytes([7, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5])


def figures(engine, count, rounds):
    """The figures of `count` stores, which C and the tool change in turns."""
    engine.build(["c-sqlcipher", "coffer-keyring"])
    program = built(engine)
    found = measure.Figures(engine)
    found.clean()
    turns = [("c-sqlcipher", lambda: rekey(engine, count)), ("coffer-tool", lambda: rotate(engine, program, count))]
    for index in range(rounds):
        for system, turn in turns if index % 2 == 0 else reversed(turns):
            take(found, system, count, turn())
    return found


def built(engine):
    """The path of the tool, which has to run on this engine."""
    program = tool.built(engine)
    if f"SQLCipher {engine.version}" not in engine.output([program, "--version"]):
        raise measure.Failed(f"the tool does not run on SQLCipher {engine.version}")
    return program


def take(found, system, count, entry):
    say(f"{found.engine.version} fleet of {count}: {system} {entry['us'] / 1e6:.1f} s for {entry['rows']:.0f} MB")
    found.samples.setdefault(("fleet", count, system), []).append(entry)
    found.clean()


def copies(engine, system, count):
    """Makes a store, and copies of it with all its files. Returns their paths."""
    source = engine.stores / f"{system}.db"
    measure.run(engine, system, "W1", ROWS, 1, source)
    paths = [engine.stores / f"{system}-{number}.db" for number in range(count)]
    for path in paths:
        for ending in ["", ".keyring"]:
            if os.path.exists(f"{source}{ending}"):
                shutil.copyfile(f"{source}{ending}", f"{path}{ending}")
    os.sync()
    return paths


def rekey(engine, count):
    paths = copies(engine, "c-sqlcipher", count)
    samples, _, _, _ = measure.run(engine, "c-sqlcipher", "fleet", count, 1, paths[0])
    return samples[0]


def rotate(engine, program, count):
    paths = copies(engine, "coffer-keyring", count)
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    names, key, report = (engine.stores / name for name in ["fleet.txt", "fleet.key", "fleet.jsonl"])
    names.write_text("".join(f"{path}\n" for path in paths))
    key.write_bytes(KEY)
    key.chmod(0o600)
    start = time.monotonic()
    done = subprocess.run([str(program), "rotate", "--list", str(names), "--jobs", "2", "--key-file", str(key), "--quiet",
                           "--report", str(report)], env=engine.environment, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - start
    rotated = report.read_text().count('"event":"rotated"') if report.exists() else 0
    if done.returncode != 0 or rotated != count:
        raise measure.Failed(f"coffer rotate: exit code {done.returncode}, {rotated} of {count} rotated: {done.stderr[-600:]}")
    return {"us": seconds * 1e6, "rows": megabytes}
