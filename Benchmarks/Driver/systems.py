"""What is compared: the systems, their workloads, and how they are built."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import rivals
from rivals import Skipped

HOME = Path(__file__).resolve().parent.parent
ROOT = HOME.parent
SOURCES = HOME / "Sources"
COUNTED = ["W1", "W2", "W3", "W3-many", "W4", "W5-put", "W5-get", "W5-get-integers", "W5-get-bytes", "W5-get-each", "W5-get-many", "W5-keys", "W5-entries", "W1-bind", "W2-borrow", "read-one", "read-empty",
           "watch-nobody", "watch-changes", "watch-log", "open-raw", "open-pool-raw", "flights-import", "flights-fetch"]
COUNTED_ROWS = 5000

W14 = ["W1", "W2", "W2d", "W3", "W4"]
MANY = ["W3-many"]
W5 = ["W5-put", "W5-get"]
# Values that cost less to make than Data, and the page cache that a system has by itself.
GETS = ["W5-get-integers", "W5-get-bytes", "W5-get-default"]
# A transaction for each get.
EACH = ["W5-get-each"]
# A thousand in each read, and all of them in order.
SCANS = ["W5-get-many", "W5-keys", "W5-entries"]
# What the engine room adds to C by itself: bytes are bound and read where they are, no Swift values made.
IN_PLACE = ["W1-bind", "W2-borrow"]
# One run of W6-latency is two figures, and so is one of W6-beside; only their names are in the plans.
LATENCY = ["W6-latency", "W6-latency-read"]
BESIDE = ["W6-quiet", "W6-beside", "W6-beside-4mb"]
INSERT = ["W6-single", "W6-async64"]
SET = ["W6-set64"]
DURABLE = INSERT + SET
W6 = INSERT + LATENCY
# A paced writer of a bucket, alone and beside the sweep of expired entries. One run is both figures.
SWEEP = ["sweep-quiet", "sweep-beside"]
WATCH = ["watch-nobody", "watch-value", "watch-changes", "watch-log"]
# A commit with this many observers, of which one is concerned. One run is all five figures.
OBSERVERS = ["observers-0", "observers-1", "observers-10", "observers-100", "observers-1000"]
# What a store's queue is for.
QUEUE = ["read-one", "read-empty"] + BESIDE + WATCH + ["idle"]
# Three figures of one run.
ROTATION = ["rotate-pause", "rotate-move", "rotate"]
# Many stores by the tool; its command is apart.
FLEET = ["fleet"]
# A server of a thousand writes a second, alone and through rotations. One run is all four figures.
SERVE = ["serve-quiet", "serve-quiet-read", "serve-rotating", "serve-rotating-read"]
OPEN = ["open-raw", "open-passphrase", "open-pool-raw", "open-pool-passphrase"]
FILES = ["rekey", "verify", "compact"]
BLOBS = ["blob-in", "blob-out"]
# One value of many MB, with its SHA-256.
ATTACHMENTS = ["attach-in", "attach-out"]
# A real table; Scripts/flights fetches it.
FLIGHTS = ["flights-import", "flights-fetch", "flights-questions"]
# Rows along references: a LEFT JOIN, all children of some parents, groups with three aggregates.
REFERENCES = ["refs-left", "refs-all", "refs-group"]
# Records of a key and one more property.
PRICES = [f"price-{name}" for name in ["none", "int", "double", "bool", "date", "uuid", "text-15", "text-40", "text-optional", "data-14", "data-40", "bytes-40", "enum"]]
GROWTH = ["growth-insert", "growth-get", "growth-scan", "growth-open"]
# Made on the same files afterwards; growth-index makes an index.
GROWTH_MORE = ["growth-range", "growth-group", "growth-verify", "growth-index"]

# In the order of the tables. A system's name begins with that of its executable, but for GRDB's ways.
# Those with a folder in rivals.py are built from checkouts.
WORKLOADS = {
    "c-sqlcipher": W14 + MANY + W5 + GETS + EACH + SCANS + IN_PLACE + W6 + SET + SWEEP + QUEUE + OPEN + FILES + ROTATION + FLEET + BLOBS + ATTACHMENTS + FLIGHTS + REFERENCES + GROWTH + GROWTH_MORE,
    "c-values": ["W2", "W2d", "W3"],
    "c-grouped": ["W6-async64", "W6-set64"],
    "c-checked": ["compact"],
    "c-sqlite": W14 + W5 + W6 + ["open-raw", "open-pool-raw", "verify"] + BLOBS + FLIGHTS + GROWTH + GROWTH_MORE,
    "swift-c": ["W1", "W2", "W2d", "W3", "W4"] + W5 + ["W6-single"],
    "coffer-record": W14 + MANY + ["W2-borrow"] + W6 + QUEUE + OBSERVERS + OPEN + FILES + FLIGHTS + REFERENCES + GROWTH + GROWTH_MORE + PRICES,
    "coffer-ungrouped": ["W6-async64"],
    "coffer-keyring": ["W6-single", "open-raw", "open-pool-raw"] + ROTATION + SERVE,
    "coffer-tool": FLEET,
    "coffer-fast": W14 + MANY + FLIGHTS + REFERENCES + PRICES,
    "coffer-connection": W14 + W5 + IN_PLACE + ["W6-single"],
    "coffer-bucket": W5 + GETS + EACH + SCANS + SET + SWEEP + BLOBS + ATTACHMENTS,
    "coffer-cached": EACH,
    "grdb-codable": W14 + W5 + W6 + OPEN + FLIGHTS,
    "grdb-hand": W14 + W5 + GROWTH,
    "grdb-cached": W14 + W5,
    "sqliteswift-typed": W14 + W5,
    "sqliteswift-sql": W14 + W5,
    "fmdb": W14 + W5,
    "mmkv": W5,
    "lmdb": W5,
    "rocksdb": W5,
}
ALL_WORKLOADS = W14 + MANY + W5 + GETS + EACH + SCANS + IN_PLACE + W6 + SET + SWEEP + QUEUE + OBSERVERS + OPEN + FILES + ROTATION + SERVE + FLEET + BLOBS + ATTACHMENTS + FLIGHTS + REFERENCES + GROWTH + GROWTH_MORE
UNENCRYPTED = {"c-sqlite", "lmdb", "rocksdb"}
# Encrypts without SQLCipher, and without authentication.
UNAUTHENTICATED = {"mmkv"}
# The systems that `check` counts: Coffer's layers, and what they are compared with.
OWN = ["c-sqlcipher", "c-values", "swift-c", "coffer-record", "coffer-fast", "coffer-connection", "coffer-bucket",
       "coffer-cached", "coffer-keyring"]


def say(text):
    print(f"bench: {text}", flush=True)


class Engine:
    """One SQLCipher: its environment, its scratch folder and the executables built against it."""

    home = HOME
    sources = SOURCES

    def __init__(self, is_fourth):
        self.suffix = "-engine4" if is_fourth else ""
        self.scratch = ROOT / f".build-bench{self.suffix}"
        self.environment = dict(os.environ)
        if is_fourth:
            select = f"settings=$({shlex.quote(str(ROOT / 'Scripts/sqlcipher4'))} --env) && eval \"$settings\" && env -0"
            text = subprocess.run(["bash", "-c", select], check=True, stdout=subprocess.PIPE).stdout
            pairs = [pair.split("=", 1) for pair in text.decode().split("\0") if "=" in pair]
            self.environment = dict(pairs)
        self.environment["COFFER_FLIGHTS"] = str(ROOT / ".build-data/flights.csv")
        self.tools = self.scratch / "c"
        self.stores = self.scratch / "stores"
        self.tools.mkdir(parents=True, exist_ok=True)
        self.stores.mkdir(parents=True, exist_ok=True)
        self.skipped = {}
        # Of what was built from checkouts, by executable: version and commit.
        self.origins = {}
        self.version = self.ask_version()

    def run(self, arguments, **options):
        return subprocess.run(arguments, env=self.environment, check=True, **options)

    def run_quietly(self, arguments):
        """What it printed comes back, also of a failure."""
        return subprocess.run(arguments, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def output(self, arguments):
        return self.run(arguments, stdout=subprocess.PIPE, text=True).stdout

    def ask_version(self):
        """`PRAGMA cipher_version` of the library that pkg-config finds, such as 4.6.1."""
        # OpenSSL derives a passphrase for all connections of a pool at once.
        self.compile_c("c-sqlcipher", ["CFloor"], ["sqlcipher", "libcrypto"], [])
        lines = self.output([self.tools / "c-sqlcipher", "c-sqlcipher", "W1", "1", "1", self.stores / "version.db"])
        for line in lines.splitlines():
            if "cipher_version" in line:
                return line.split('"')[3].split()[0]
        raise SystemExit("bench: pkg-config's sqlcipher does not encrypt; see README.md of Coffer")

    def is_fourth(self):
        return int(self.version.split(".")[0]) >= 4

    # Building

    def flags(self, packages):
        try:
            return shlex.split(self.output(["pkg-config", "--cflags", "--libs", *packages]))
        except (subprocess.CalledProcessError, FileNotFoundError):
            raise Skipped(f"pkg-config finds no {' and no '.join(packages)}")

    def compile_c(self, name, folders, packages, options):
        sources = sorted(str(path) for folder in folders + ["CWorkload"] for path in (SOURCES / folder).glob("*.c"))
        libraries = self.flags(packages)
        includes = [f"-I{SOURCES / 'CWorkload/include'}", f"-I{SOURCES / 'CFloor'}"]
        compiler = self.environment.get("CC", "cc")
        command = [compiler, "-O2", "-std=gnu17", "-Wall", "-pthread", *includes, *sources, *options, *libraries]
        self.run(command + ["-o", str(self.tools / name)])

    def compile_rival(self, name, header, library, version_header=None):
        source = SOURCES / "CRivals" / f"{name}.c"
        folders = [Path(name) for name in ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]]
        folder = next((folder for folder in folders if (folder / header).exists()), None)
        if folder is None:
            raise Skipped(f"{header} is not installed")
        options = []
        if version_header:
            # For a library that does not tell its version in C.
            numbers = re.findall(r"define \w+_(?:MAJOR|MINOR|PATCH) (\d+)", (folder / version_header).read_text())
            options = [f'-D{name.upper()}_VERSION="{".".join(numbers)}"']
        compiler = self.environment.get("CC", "cc")
        shared = SOURCES / "CWorkload"
        self.run([compiler, "-O2", "-std=gnu17", "-Wall", f"-I{shared / 'include'}", *options, str(source),
                  str(shared / "workload.c"), f"-l{library}", "-o", str(self.tools / name)])

    def swift_build(self, product, options=(), is_rival=False):
        environment = dict(self.environment)
        # With it the package has targets whose sources need not be there.
        if not is_rival:
            environment.pop("RIVALS", None)
        subprocess.run(["swift", "build", "--quiet", "-c", "release", "--package-path", str(HOME),
                        "--scratch-path", str(self.scratch), "--product", product, *options],
                       env=environment, check=True)

    def build(self, systems):
        """Builds what the systems need; what cannot be built is skipped and said."""
        say(f"building for SQLCipher {self.version}; the first time takes some minutes")
        executables = dict.fromkeys(self.executable(system) for system in systems)
        for executable in executables:
            try:
                self.build_one(executable)
            except Skipped as reason:
                for system in [name for name in systems if self.executable(name) == executable]:
                    self.skip(system, str(reason))

    def build_one(self, executable):
        if executable == "c-sqlcipher":
            return  # built to ask for the version
        if executable == "c-values":
            return self.compile_c(executable, ["CFloor"], ["sqlcipher", "libcrypto"], ["-DFLOOR_OWNS_VALUES"])
        if executable == "c-sqlite":
            return self.compile_c(executable, ["CFloor"], ["sqlite3"], ["-DFLOOR_IS_PLAIN"])
        if executable == "lmdb":
            return self.compile_rival(executable, "lmdb.h", "lmdb")
        if executable == "rocksdb":
            return self.compile_rival(executable, "rocksdb/c.h", "rocksdb", "rocksdb/version.h")
        if executable in rivals.CHECKOUTS:
            return rivals.build(self, executable)
        if executable == "bench-grdb":
            if not self.is_fourth():
                raise Skipped("GRDB needs a newer SQLite than that of SQLCipher 3")
            try:
                return self.swift_build(executable, ["--traits", "Rivals"])
            except subprocess.CalledProcessError:
                raise Skipped("GRDB could not be fetched or built (see above)")
        self.swift_build(executable)

    def skip(self, system, reason):
        if system not in self.skipped:
            say(f"{system} is skipped: {reason}")
        self.skipped[system] = reason

    # Running

    @staticmethod
    def executable(system):
        for beginning in ["coffer", "grdb", "sqliteswift"]:
            if system.startswith(beginning):
                return f"bench-{beginning}"
        return {"swift-c": "bench-swift-c", "c-grouped": "c-sqlcipher", "c-checked": "c-sqlcipher"}.get(system, system)

    def command(self, system):
        executable = self.executable(system)
        folder = self.scratch / "release" if executable.startswith("bench-") else self.tools
        return str(folder / executable)

    def strip(self, systems):
        """Copies without debug information, at which valgrind 3.19 gives up."""
        for command in {self.command(name) for name in systems if name not in self.skipped}:
            self.run(["strip", "--strip-debug", "-o", command + ".counted", command])

    def environment_of(self, system):
        environment = dict(self.environment, SWIFT_DETERMINISTIC_HASHING="1", SWIFT_BACKTRACE="enable=no")
        if self.executable(system) == "bench-grdb":
            # GRDB links libsqlite3; SQLCipher's symbols have to come first. Proven by cipher_version.
            folder = self.output(["pkg-config", "--variable=libdir", "sqlcipher"]).strip()
            environment["LD_PRELOAD"] = str(Path(folder) / "libsqlcipher.so")
        return environment


def has_valgrind():
    return shutil.which("valgrind") is not None
