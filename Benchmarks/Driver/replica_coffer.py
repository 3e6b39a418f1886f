"""The measurements of Coffer's replicas, each of which is a process of bench-replica."""

import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import measure
from replica_plan import FLEET, FLEET_SECONDS, IDLE_SECONDS, PASSES, ROUNDS, ROWS_OF_GIGABYTE, SECONDS, SHIPPED, SMALL, changed_pages, remove, summary
from systems import say


class Coffer:
    def __init__(self, engine):
        self.engine, self.folder = engine, engine.stores

    def call(self, measurement, store, *numbers, remote=None):
        """The objects that a process prints."""
        os.sync()
        program = self.engine.scratch / "release/bench-replica"
        remote = remote or f"{store}.remote"
        done = subprocess.run([str(program), measurement, str(store), str(remote), *map(str, numbers)],
                              env=self.engine.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise measure.Failed(f"bench-replica {measurement}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        if measurement != "commits":
            say(f"{measurement} {' '.join(map(str, numbers))}: {answers}")
        return answers

    def figures(self, gigabytes):
        small, large = self.folder / "small.db", self.folder / "large.db"
        found = {"small": self.commits(small, SMALL)}
        rows = gigabytes * ROWS_OF_GIGABYTE
        self.call("fill", large, rows)
        found["file_bytes"] = large.stat().st_size
        found["copy"] = self.call("copy", large)[0]
        copied = time.monotonic()
        found["restore"] = self.restores(large)
        found["ship"] = self.ship(large, rows)
        found["pass"] = self.passes(large, rows)
        found["idle"] = self.call("idle", large, IDLE_SECONDS)[0]
        found["large"] = self.commits(large, rows)
        # A snapshot is made a minute after the last one, or after the first transfer, at the earliest.
        time.sleep(max(0, copied + 61 - time.monotonic()))
        found["snapshot"] = self.call("snapshot", large)[0]
        fleet = self.folder / "fleet"
        fleet.mkdir()
        found["fleet"] = {part.pop("what"): part for part in self.call("fleet", fleet / "store", FLEET, FLEET_SECONDS)}
        return found

    def commits(self, store, rows):
        if not store.exists():
            self.call("fill", store, rows)
        found = summary(self.call("commits", store, rows, SECONDS, ROUNDS))
        say(f"commits of {store.name}, µs: {found}")
        return found

    def restores(self, store):
        """In turns with the download."""
        copy, times = Path(f"{store}.copy"), {"restore": [], "download": []}
        for kind in ["download", "restore"] * 2:
            answer = self.call(kind, copy, remote=f"{store}.remote")[0]
            times[kind].append(answer["seconds"])
            remove(copy)
        return {"seconds": min(times["restore"]), "download": min(times["download"]),
                "cpu": answer["cpu"], "peak": answer["peak"]}

    def ship(self, store, rows):
        before = Path(f"{store}.before")
        shutil.copyfile(store, before)
        found = self.call("ship", store, SHIPPED, rows)[0]
        found["pages"] = changed_pages(before, store)
        before.unlink()
        return found

    def passes(self, store, rows):
        all_passes = self.call("pass", store, PASSES, rows)
        return {name: statistics.median(one[name] for one in all_passes) for name in all_passes[0]}
