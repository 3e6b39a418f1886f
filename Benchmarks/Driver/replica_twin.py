"""The same measurements of a plaintext twin, whose replica Litestream makes."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import litestream
import measure
from replica_plan import FLEET, FLEET_SECONDS, IDLE_SECONDS, ROUNDS, ROWS_OF_GIGABYTE, SECONDS, SHIPPED, SMALL, changed_pages, remove, size, summary
from systems import HOME, say


class Twin:
    def __init__(self, engine):
        self.engine, self.folder = engine, engine.stores
        self.program = litestream.installed(engine)

    def figures(self, gigabytes):
        small, large = self.folder / "small.db", self.folder / "large.db"
        found = {"version": self.engine.output([str(self.program), "version"]).strip()}
        found["small"] = self.commits(small, SMALL)
        rows = gigabytes * ROWS_OF_GIGABYTE
        self.fill(large, rows)
        found["file_bytes"] = large.stat().st_size
        found["copy"], found["restore"] = self.copy(large)
        found["ship"] = self.ship(large, rows)
        found["idle"] = self.idle(large)
        found["large"] = self.commits(large, rows)
        found["fleet"] = self.fleet()
        return found

    def fill(self, store, rows):
        """The same rows as bench-replica's."""
        measure.run(self.engine, "c-sqlite", "growth-insert", rows, 1, store)

    def server(self, store):
        return litestream.Litestream(self.program, self.folder, [(store, f"{store}.remote")])

    def commits(self, store, rows):
        if not store.exists():
            self.fill(store, rows)
        blocks = []
        with Writer(store, rows) as writer:
            for _ in range(ROUNDS):
                blocks.append({"replicated": False, "latencies_us": writer.run(seconds=SECONDS)})
                with self.server(store):
                    blocks.append({"replicated": True, "latencies_us": writer.run(seconds=SECONDS)})
        found = summary(blocks)
        say(f"commits of the twin {store.name}, µs: {found}")
        return found

    def idle(self, store):
        remote = Path(f"{store}.remote")
        with self.server(store) as server:
            time.sleep(2)
            count, cpu = len(list(remote.rglob("*"))), cpu_of(server.process.pid)
            time.sleep(IDLE_SECONDS)
            return {"puts": len(list(remote.rglob("*"))) - count, "cpu": cpu_of(server.process.pid) - cpu}

    def copy(self, store):
        """The first transfer, and the restore."""
        server, copy = self.server(store), Path(f"{store}.copy")
        os.sync()
        start = time.monotonic()
        with server:
            copying = time.monotonic() - start
            # A snapshot follows, of the same bytes.
            time.sleep(5)
        times = []
        for _ in range(2):
            os.sync()
            start = time.monotonic()
            server.restore(copy)
            times.append(time.monotonic() - start)
            remove(copy)
        found = {"seconds": copying, "bytes": size(f"{store}.remote")}, {"seconds": min(times)}
        say(f"twin, first transfer and restore: {found}")
        return found

    def ship(self, store, rows):
        before, remote = Path(f"{store}.before"), f"{store}.remote"
        with Writer(store, rows) as writer:
            writer.run(count=1)
        shutil.copyfile(store, before)
        with Writer(store, rows) as writer, self.server(store) as server:
            known = litestream.first_files(remote)
            writer.run(count=SHIPPED)
            server.sync()
            sent = {path: count for path, count in litestream.first_files(remote).items() if path not in known}
        found = {"puts": len(sent), "bytes": sum(sent.values()), "pages": changed_pages(before, store)}
        before.unlink()
        say(f"twin, {SHIPPED} commits of one row: {found}")
        return found

    def fleet(self):
        folder = self.folder / "fleet"
        folder.mkdir()
        pairs = [(folder / f"store-{number}", folder / f"remote-{number}") for number in range(FLEET)]
        connections = [sqlite3.connect(store, isolation_level=None) for store, _ in pairs]
        for connection in connections:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
        with litestream.Litestream(self.program, self.folder, pairs) as server:
            found, cpu, start = {}, cpu_of(server.process.pid), time.monotonic()
            for second in range(FLEET_SECONDS):
                for connection in connections:
                    connection.execute("INSERT INTO note VALUES (?, 'second')", (second,))
                for _ in range(20):
                    time.sleep(0.05)
                    for name, count in use_of(server.process.pid).items():
                        found[name] = max(found.get(name, 0), count)
            found |= {"cpu": cpu_of(server.process.pid) - cpu, "seconds": time.monotonic() - start}
        for connection in connections:
            connection.close()
        say(f"twins, {FLEET}: {found}")
        return {"replicas": found}


class Writer:
    """The process of twin.py."""

    def __init__(self, store, rows):
        self.process = subprocess.Popen([sys.executable, str(HOME / "Driver/twin.py"), str(store), str(rows)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def run(self, **order):
        """Latencies in µs."""
        os.sync()
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())["latencies_us"]


def use_of(process):
    folder = Path("/proc") / str(process)
    lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return {"threads": int(lines["Threads"]), "descriptors": len(list((folder / "fd").iterdir())),
            "memory": int(lines["VmRSS"].split()[0]) * 1024}


def cpu_of(process):
    """User and system time, in seconds."""
    fields = (Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
