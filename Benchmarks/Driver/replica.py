"""Replicas of Coffer beside Litestream, which replicates the plaintext twin: the same rows, in turns in one run."""

import os
import shutil

from replica_coffer import Coffer
from replica_twin import Twin
from systems import Skipped, say


def figures(engine, gigabytes):
    """All figures of one run, by system."""
    engine.build(["c-sqlite"])
    engine.swift_build("bench-replica")
    clean(engine.stores)
    found = {"engine": engine.version, "gigabytes": gigabytes, "load_before": os.getloadavg()[0]}
    found["coffer"] = Coffer(engine).figures(gigabytes)
    clean(engine.stores)
    try:
        found["litestream"] = Twin(engine).figures(gigabytes)
    except Skipped as reason:
        say(f"Coffer is measured alone: {reason}")
    clean(engine.stores)
    found["load_after"] = os.getloadavg()[0]
    return found


def clean(folder):
    shutil.rmtree(folder)
    folder.mkdir()
