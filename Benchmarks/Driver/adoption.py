"""What it costs to adopt Coffer: bytes, libraries, build time, type-checking time."""

import os
import re
import shutil
import statistics
import time

from measure import Failed
from systems import ROOT, say

# The flags are in the package, since on the command line they would build the dependencies anew.
# The first does nothing without the second, whose limit in ms nothing reaches.
PACKAGE = """// swift-tools-version:6.1

import PackageDescription

let package = Package(
    name: "hello",
    platforms: [.macOS(.v15)],
    dependencies: [{package}],
    targets: [
        .executableTarget(
            name: "hello",
            dependencies: [{products}],
            swiftSettings: [
                .unsafeFlags([
                    "-Xfrontend", "-debug-time-expression-type-checking",
                    "-Xfrontend", "-warn-long-expression-type-checking=600000",
                ])
            ])
    ],
    swiftLanguageModes: [.v6]
)
"""
# What a change replaces, and what tells the query's line from others.
GREETING, QUERY = "hello, it is", "// the query"

HELLO = f"""import Foundation

@main struct Hello {{
    static func main() {{ print("{GREETING}", Date()) }}
}}
"""
CRYPTO = f"""import Crypto
import CryptoExtras
import Foundation

@main struct Hello {{
    static func main() throws {{
        let key = try KDF.Insecure.PBKDF2.deriveKey(
            from: Data("correct horse battery".utf8), salt: Data("a salt of 16 byte".utf8),
            using: .sha256, outputByteCount: 32, unsafeUncheckedRounds: 1000)
        let code = HMAC<SHA512>.authenticationCode(for: Data("hello".utf8), using: key)
        print("{GREETING}", Date(), code)
    }}
}}
"""
COFFER = f"""import Coffer
import Foundation

struct Note: Record {{
    var id = UUID()
    var title: String
    var pinned = false
    var created = Date()
    var words = 0
}}

func query(_ text: String, _ since: Date) -> Query<Note> {{
    {QUERY}
    Note.where(
        \\.pinned == true && \\.title != text && \\.created > since && \\.words >= 3 && \\.words < 900)
}}

@main struct Hello {{
    static func main() throws {{
        let store = try Store(path: "notes.db", key: .passphrase("correct horse battery"))
        try store.write {{ tx in try tx.insert(Note(title: "hello")) }}
        print("{GREETING}", try store.read {{ tx in try tx.fetch(query("", .distantPast)) }})
    }}
}}
"""
GRDB = f"""import Foundation
import GRDB

struct Note: Codable, FetchableRecord, PersistableRecord {{
    enum Columns {{
        static let title = Column(CodingKeys.title)
        static let pinned = Column(CodingKeys.pinned)
        static let created = Column(CodingKeys.created)
        static let words = Column(CodingKeys.words)
    }}
    var id = UUID()
    var title: String
    var pinned = false
    var created = Date()
    var words = 0
}}

func query(_ text: String, _ since: Date) -> QueryInterfaceRequest<Note> {{
    {QUERY}
    Note.filter {{ $0.pinned == true }}.filter {{ $0.title != text }}.filter {{ $0.created > since }}.filter {{ $0.words >= 3 }}.filter {{ $0.words < 900 }}
}}

@main struct Hello {{
    static func main() throws {{
        let pool = try DatabasePool(path: "notes.db")
        try pool.write {{ db in
            try db.create(table: "note") {{ table in
                table.primaryKey("id", .blob)
                table.column("title", .text).notNull()
                table.column("pinned", .boolean).notNull()
                table.column("created", .datetime).notNull()
                table.column("words", .integer).notNull()
            }}
            try Note(title: "hello").insert(db)
        }}
        print("{GREETING}", try pool.read {{ db in try query("", .distantPast).fetchAll(db) }})
    }}
}}
"""

COFFER_PACKAGE = f'.package(name: "coffer", path: "{ROOT}")'
CRYPTO_PACKAGE = '.package(url: "https://github.com/apple/swift-crypto", from: "4.5.2")'
GRDB_PACKAGE = '.package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0")'

# The program, what it needs, and its source; the first is what the others are compared with.
PROGRAMS = {
    "hello": ("", [], HELLO),
    "hello, swift-crypto": (CRYPTO_PACKAGE, [("Crypto", "swift-crypto"), ("CryptoExtras", "swift-crypto")], CRYPTO),
    "hello, Coffer": (COFFER_PACKAGE, [("Coffer", "coffer")], COFFER),
    "hello, GRDB": (GRDB_PACKAGE, [("GRDB", "GRDB.swift")], GRDB),
}
CONFIGURATIONS = ["release", "debug"]
CHANGES = 3


class Program:
    """One small program in a package of its own, made anew."""

    def __init__(self, engine, name):
        package, products, self.source = PROGRAMS[name]
        self.engine = engine
        self.folder = engine.scratch / "adoption" / re.sub(r"\W+", "-", name)
        self.file = self.folder / "Sources/hello/Hello.swift"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.file.parent.mkdir(parents=True)
        needs = ", ".join(f'.product(name: "{product}", package: "{of}")' for product, of in products)
        (self.folder / "Package.swift").write_text(PACKAGE.format(package=package, products=needs))
        self.file.write_text(self.source)
        self.swift("package", "resolve")  # so that no build waits for the network

    def swift(self, *arguments):
        done = self.engine.run_quietly(["swift", *arguments[:1], "--package-path", str(self.folder), *arguments[1:]])
        if done.returncode != 0:
            raise Failed(f"swift {arguments[0]} of {self.folder.name}: {done.stdout.strip()[-2000:]}")
        return done.stdout

    def build(self, configuration):
        """Seconds, and what the compiler says."""
        start = time.monotonic()
        log = self.swift("build", "-c", configuration, "--product", "hello")
        return time.monotonic() - start, log

    def change(self, number):
        self.file.write_text(self.source.replace(GREETING, f"{GREETING} change {number}:"))

    def binary(self):
        return self.folder / ".build/release/hello"

    def stripped_bytes(self):
        stripped = self.folder / "stripped"
        self.engine.run(["strip", "-o", str(stripped), str(self.binary())])
        return stripped.stat().st_size

    def libraries(self):
        """The dynamic libraries it loads, also through others."""
        listing = self.engine.output(["ldd", str(self.binary())])
        return {line.split()[0].rsplit("/", 1)[-1] for line in listing.splitlines()}

    def query_ms(self, log):
        """How long the compiler took for the types of the query, whose expression begins one line
        below its mark; None for a program without a query."""
        lines = self.source.splitlines()
        marks = [index for index, line in enumerate(lines) if QUERY in line]
        if not marks:
            return None
        found = re.findall(rf"([\d.]+)ms\s+\S*Hello\.swift:{marks[0] + 2}:", log)
        if not found:
            raise Failed(f"the compiler did not say how long the query of {self.folder.name} took")
        return max(map(float, found))


def measure(engine, names):
    """One object for each program; without names, for all. The first is the measure of the others."""
    plain = None
    wanted = ["hello", *names] if names else list(PROGRAMS)
    for name in [name for name in PROGRAMS if name in wanted]:
        load = os.getloadavg()[0]
        try:
            program = Program(engine, name)
            figures = times(program)
        except Failed as failure:
            if "GRDB" not in name:
                raise
            say(f"{name} is skipped: {failure}")
            continue
        size, libraries = program.stripped_bytes(), program.libraries()
        plain = plain or (size, libraries)
        figures |= {
            "load_average": round(load, 2),
            "stripped_bytes": size,
            "stripped_bytes_added": size - plain[0],
            "libraries_added": sorted(libraries - plain[1]),
        }
        say(f"{name}: {figures}")
        yield entry(engine, name, figures)
        shutil.rmtree(program.folder)


def times(program):
    figures, queries = {}, []
    for configuration in CONFIGURATIONS:
        program.file.write_text(program.source)
        seconds, log = program.build(configuration)
        figures[f"clean_{configuration}_s"] = round(seconds, 1)
        queries.append(program.query_ms(log))
        changes = []
        for number in range(CHANGES):
            program.change(number)
            seconds, log = program.build(configuration)
            changes.append(seconds)
            queries.append(program.query_ms(log))
        figures[f"changed_{configuration}_s"] = round(statistics.median(changes), 1)
    figures["query_ms"] = None if None in queries else round(statistics.median(queries), 2)
    return figures


def entry(engine, name, figures):
    """As all other figures, with the clean build for release as the time."""
    microseconds = figures["clean_release_s"] * 1e6
    return {
        "workload": "adoption", "system": name, "engine": engine.version,
        "median_us": microseconds, "min_us": microseconds, "ratio_to_c": None,
        "instructions_ratio_to_c": None, "extra_instructions_per_row": None, "runs": 1, "rows": 1,
        "adoption": figures,
    }
