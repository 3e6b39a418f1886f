"""Runs the micro-benchmarks, a package of its own in Micro, by the plugin of ordo-one/benchmark."""

import subprocess

from systems import HOME, ROOT, say

PACKAGE = HOME / "Micro"
# What is the same in every run; README.md says why not the others.
STABLE = ["readSyscalls", "writeSyscalls", "writeBytesLogical"]


def plugin(engine, *arguments):
    """The exit code of `swift package benchmark`."""
    say(f"building for SQLCipher {engine.version}; the first time takes some minutes")
    command = ["swift", "package", "--package-path", str(PACKAGE),
               "--scratch-path", str(ROOT / f".build-micro{engine.suffix}"),
               "--allow-writing-to-package-directory", "benchmark", *arguments]
    return subprocess.run(command, env=engine.environment).returncode


def selected(pattern):
    """A room, or whatever has the pattern in its name."""
    if not pattern:
        return []
    is_room = (PACKAGE / "Benchmarks" / pattern).is_dir()
    return ["--target", pattern] if is_room else ["--filter", f".*(?:{pattern}).*"]


def measure(engine, pattern=""):
    return plugin(engine, *selected(pattern))


def thresholds(engine, verb, pattern=""):
    """`check` or `update`, on the metrics that repeat and in the files of this engine."""
    metrics = [word for metric in STABLE for word in ("--metric", metric)]
    path = PACKAGE / "Thresholds" / engine.version
    return plugin(engine, "thresholds", verb, "--no-progress", "--path", str(path), *metrics, *selected(pattern))
