"""What it costs to adopt Coffer: bytes, build time, type-checking time."""

import json
import re
import shutil
import subprocess
import time

from systems import HOME, ROOT, say

RESULT = HOME / "results" / "adoption.json"
PACKAGE = """// swift-tools-version:6.1
import PackageDescription

let package = Package(
    name: "hello", platforms: [.macOS(.v15)],
    dependencies: [{dependency}],
    targets: [.executableTarget(name: "hello", dependencies: [{product}])],
    swiftLanguageModes: [.v6])
"""
PLAIN = """import Foundation

@main struct Hello {
    static func main() { print("hello, it is", Date()) }
}
"""
WITH = """import Coffer
import Foundation

struct Note: Record {
    var id = UUID()
    var title: String
    var pinned = false
    var created = Date()
    var words = 0
}

func query(_ text: String, _ since: Date) -> Query<Note> {
    Note.where(
        \\.pinned == true && \\.title != text && \\.created > since && \\.words >= 3 && \\.words < 900)
}

@main struct Hello {
    static func main() throws {
        let store = try Store(path: "notes.db", key: .passphrase("correct horse battery"))
        try store.write { tx in try tx.insert(Note(title: "hello")) }
        print("hello, it is", try store.read { tx in try tx.fetch(query("", .distantPast)) })
    }
}
"""


def build(engine, folder, options=()):
    start = time.monotonic()
    done = engine.run(["swift", "build", "-c", "release", "--package-path", str(folder), "--product", "hello", *options],
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return time.monotonic() - start, done.stdout


def stripped_bytes(engine, folder):
    binary = folder / ".build/release/hello"
    engine.run(["strip", "-o", str(folder / "stripped"), str(binary)])
    return (folder / "stripped").stat().st_size


def make(folder, dependency, product, source):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "Sources/hello").mkdir(parents=True)
    (folder / "Package.swift").write_text(PACKAGE.format(dependency=dependency, product=product))
    (folder / "Sources/hello/Hello.swift").write_text(source)


def measure(engine):
    """Builds a program without and with Coffer, from nothing and after a change of one line."""
    plain, coffer = engine.scratch / "hello-plain", engine.scratch / "hello-coffer"
    make(plain, "", "", PLAIN)
    make(coffer, f'.package(name: "coffer", path: "{ROOT}")', '.product(name: "Coffer", package: "coffer")', WITH)
    plain_clean, _ = build(engine, plain)
    coffer_clean, _ = build(engine, coffer)
    program = coffer / "Sources/hello/Hello.swift"
    program.write_text(program.read_text().replace("hello, it is", "hello, it was"))
    incremental, _ = build(engine, coffer)
    size, plain_size = stripped_bytes(engine, coffer), stripped_bytes(engine, plain)
    program.write_text(program.read_text().replace("it was", "there is"))
    _, log = build(engine, coffer, ["-Xswiftc", "-Xfrontend", "-Xswiftc", "-warn-long-expression-type-checking=1"])
    times = [int(found) for found in re.findall(r"Hello\.swift.*expression took (\d+)ms", log)]
    result = {
        "engine": engine.version,
        "stripped_bytes_added": size - plain_size,
        "stripped_bytes_plain": plain_size,
        "clean_build_s_plain": round(plain_clean, 1),
        "clean_build_s": round(coffer_clean, 1),
        "incremental_build_s": round(incremental, 1),
        "five_term_query_type_check_ms": max(times) if times else None,
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    say(f"wrote {RESULT.relative_to(ROOT)}: {result}")
