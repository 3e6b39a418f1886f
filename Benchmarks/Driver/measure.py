"""Takes the samples: times interleaved over all systems, instructions one system after another."""

import json
import os
import random
import re
import shutil
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor

from systems import ALL_WORKLOADS, COUNTED, COUNTED_ROWS, DURABLE, OWN, UNAUTHENTICATED, UNENCRYPTED, WORKLOADS, say

# What every system has to report of itself, where its engine knows the word.
SETTINGS = ["page_size", "cache_size", "journal_mode", "synchronous", "temp_store"]


class Failed(Exception):
    pass


def run(engine, system, workload, rows, repeats, path, prefix=(), ending=""):
    """One process; returns its samples and what it says of itself."""
    command = [*prefix, engine.command(system) + ending, system, workload, str(rows), str(repeats), str(path)]
    done = subprocess.run(command, env=engine.environment_of(system), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"{system} {workload}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    samples, facts, skipped = [], {}, None
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        if "us" in entry:
            samples.append(entry)
        elif "skipped" in entry:
            skipped = entry["skipped"]
        else:
            for key, value in entry.items():
                # A system with several connections says it of each.
                if facts.setdefault(key, value) != value:
                    raise Failed(f"{system} {workload}: {key} is {facts[key]} and {value}")
    return samples, facts, skipped, done.stderr


def path_of(engine, system, workload):
    """All workloads of growth share the file that growth-insert leaves."""
    name = "growth" if workload.startswith("growth") else workload
    return engine.stores / f"{system}-{name}.db"


class Figures:
    """All samples of one engine, by workload, rows and system."""

    def __init__(self, engine):
        self.engine = engine
        self.samples = {}
        self.checks = {}
        self.counts = {}
        self.settings = {}
        self.versions = {}

    def time(self, plan, systems):
        """`plan`: workload, rows, rounds, repeats. Systems take turns, so that noise meets all alike."""
        for workload, rows, rounds, repeats in plan:
            able = [name for name in systems if workload in WORKLOADS[name] and name not in self.engine.skipped]
            for index in range(rounds):
                # Another order in each round, the same in each run: nobody always follows the same one.
                order = random.Random(f"{workload} {rows} {index}").sample(able, len(able))
                for system in order:
                    # What the one before left to write is not on the clock of the next.
                    os.sync()
                    self.take_or_skip(workload, rows, repeats, system)
            medians = {name: self.median(workload, rows, name) for name in able}
            shown = ", ".join(f"{name} {value / 1e3:.1f}" for name, value in medians.items() if value)
            say(f"{self.engine.version} {workload}, {rows} rows, ms: {shown}")
            if not workload.startswith("growth"):
                self.clean()

    def take_or_skip(self, workload, rows, repeats, system):
        """A rival that fails is skipped and said; a failure of our own ends the run."""
        if system in self.engine.skipped:
            return
        try:
            self.take(workload, rows, repeats, system)
        except Failed as failure:
            if system in OWN:
                raise
            self.engine.skip(system, str(failure))
            # Half a figure is none.
            for key in [key for key in self.samples if key[1:] == (rows, system) and key[0].startswith(workload)]:
                del self.samples[key]

    def take(self, workload, rows, repeats, system):
        path = path_of(self.engine, system, workload)
        samples, facts, skipped, _ = run(self.engine, system, workload, rows, repeats, path)
        if skipped:
            return
        self.prove(system, workload, facts, path)
        # The sum over what was read is the same in all systems, and a scan's that of what was inserted.
        # Of what is opened each system counts as many rows as it has connections, and a server writes what it can.
        key = "growth-insert" if workload == "growth-scan" else workload
        for sample in samples:
            expected = self.checks.setdefault((key, rows), sample["check"])
            if sample["check"] != expected and not workload.startswith(("open", "serve")):
                raise Failed(f"{system} {workload}: read other rows than the other systems")
            # Latencies name the figure they belong to.
            self.samples.setdefault((sample.get("workload", workload), rows, system), []).append(sample)

    def prove(self, system, workload, facts, path):
        """That the engine is the one that is meant, that it encrypts, and is set up as for all the others."""
        versions = {key: value for key, value in facts.items() if key.endswith("_version")}
        self.versions.setdefault(system, {}).update(versions)
        if system not in UNENCRYPTED | UNAUTHENTICATED:
            if not facts.get("cipher_version", "").startswith(self.engine.version):
                raise Failed(f"{system} {workload} runs on SQLCipher '{facts.get('cipher_version')}', not {self.engine.version}")
            with path.open("rb") as file:
                head = file.read(16)
            if len(head) < 16 or head == b"SQLite format 3\0":
                raise Failed(f"{system} {workload} left a file that is not encrypted")
        found = {key: facts[key] for key in SETTINGS if key in facts}
        if not found:
            return
        kind = ("W2d" if workload == "W2d" else "W6" if workload.startswith(("W6", "rotate", "serve"))
                else f"{workload} of {system}" if workload == "W5-get-default" else "all others")
        expected = self.settings.setdefault(kind, found)
        if found != expected:
            raise Failed(f"{system} {workload} is set up differently: {found}, not {expected}")

    def clean(self):
        for path in self.engine.stores.iterdir():
            if path.is_dir():
                shutil.rmtree(path)  # RocksDB's store is a folder
            else:
                path.unlink()

    # Instructions

    def count(self, systems, workloads=COUNTED, rounds=1):
        """Instructions of the measured part, by callgrind; as many at once as there are cores."""
        self.engine.strip(systems)
        jobs = [(workload, system) for workload in workloads for system in systems
                if workload in WORKLOADS[system] and system not in self.engine.skipped] * rounds
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (workload, system), count in zip(jobs, pool.map(lambda job: self.count_one(*job), jobs)):
                if count is not None:
                    self.counts.setdefault((workload, system), []).append(count)
        for workload in workloads:
            shown = ", ".join(f"{name} {self.count_of(workload, name) / COUNTED_ROWS:.0f}"
                              for name in systems if self.count_of(workload, name))
            say(f"{self.engine.version} {workload}, instructions per row: {shown}")
        self.clean()

    def count_one(self, workload, system):
        output = self.engine.scratch / f"callgrind-{workload}-{system}.out"
        tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}"]
        path = path_of(self.engine, system, f"count-{workload}")
        try:
            _, _, skipped, log = run(self.engine, system, workload, COUNTED_ROWS, 1, path, prefix=tool, ending=".counted")
        except Failed as failure:
            if system in OWN:
                raise
            return say(f"{system} {workload} is not counted: {failure}")
        found = re.search(r"Collected\s*:\s*(\d+)", log)
        # 0 is a program that was built without callgrind.h.
        if skipped or not found or int(found.group(1)) == 0:
            raise Failed(f"{system} {workload}: callgrind counted nothing")
        return int(found.group(1))

    def count_of(self, workload, system):
        counts = self.counts.get((workload, system))
        return counts[-1] if counts else None

    # Results

    def median(self, workload, rows, system):
        times = self.times(workload, rows, system)
        return statistics.median(times) if times else None

    def times(self, workload, rows, system):
        return [sample["us"] for sample in self.samples.get((workload, rows, system), [])]

    def origin(self, system):
        """Of a rival from a checkout: its version, its commit, and the runtime that it needs beside it."""
        facts = dict(self.engine.origins.get(self.engine.executable(system), {}))
        runtime = self.versions.get(system, {}).get("runtime_version")
        return {**facts, "runtime": runtime} if facts and runtime else facts

    def objects(self):
        """One object for each figure, as the issue lays it out."""
        systems = list(WORKLOADS)
        for workload, rows, system in sorted(self.samples, key=lambda key: (
                ALL_WORKLOADS.index(key[0]), key[1], systems.index(key[2]))):
            samples = self.samples[workload, rows, system]
            times, of_floor = self.times(workload, rows, system), self.times(workload, rows, "c-sqlcipher")
            median, floor = statistics.median(times), self.median(workload, rows, "c-sqlcipher")
            count, floor_count = self.count_of(workload, system), self.count_of(workload, "c-sqlcipher")
            is_counted = count is not None and floor_count is not None
            figure = {
                "workload": workload,
                "system": system,
                "engine": self.engine.version,
                "median_us": round(median, 1),
                "min_us": round(min(times), 1),
                "ratio_to_c": round(median / floor, 3) if floor else None,
                "ratio_to_c_of_minimums": round(min(times) / min(of_floor), 3) if floor else None,
                "instructions_ratio_to_c": round(count / floor_count, 3) if is_counted else None,
                "extra_instructions_per_row": round((count - floor_count) / COUNTED_ROWS) if is_counted else None,
                "runs": len(times),
                "rows": samples[0]["rows"],
                **self.origin(system),
            }
            if workload in DURABLE and samples[0]["syncs"]:
                # Counted on Linux only.
                figure["syncs_per_row"] = round(statistics.median(
                    [sample["syncs"] / sample["rows"] for sample in samples]), 4)
            if "idle" in samples[0]:
                figure["idle"] = {name: statistics.median([sample["idle"][name] for sample in samples])
                                  for name in samples[0]["idle"]}
            if "percentiles_us" in samples[0]:
                # The medians of those of each run, so that one bad run is not the whole figure; but the
                # longest is the longest of all.
                figure["percentiles_us"] = {
                    name: round((max if name == "100" else statistics.median)(
                        [sample["percentiles_us"][name] for sample in samples]), 1)
                    for name in samples[0]["percentiles_us"]}
            yield figure
