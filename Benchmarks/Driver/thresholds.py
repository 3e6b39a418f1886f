"""The gate: instruction ratios that were reached may not get worse. Wall time never gates."""

import json

import tool
from systems import COUNTED, HOME, OWN, say

FILE = HOME / "thresholds.json"
TOLERANCE = 0.05


def ratios(figures):
    for workload in COUNTED:
        floor = figures.count_of(workload, "c-sqlcipher")
        for system in OWN[1:]:
            count = figures.count_of(workload, system)
            if count:
                yield workload, system, count / floor


def read():
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def record(all_figures):
    known = read()
    for figures in all_figures:
        engine = known.setdefault(figures.engine.version, {})
        engine.clear()
        for workload, system, ratio in ratios(figures):
            engine.setdefault(system, {})[workload] = round(ratio, 3)
        engine.update(tool.count(figures.engine))
    FILE.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    say(f"wrote {FILE.relative_to(HOME.parent)}")


def check(all_figures):
    """The exit code: 0 if nothing got worse by more than the tolerance, and all is recorded."""
    known, failures = read(), 0
    for figures in all_figures:
        version = figures.engine.version
        if version not in known:
            say(f"no thresholds are recorded for SQLCipher {version}: run Benchmarks/run record")
            return 1
        counted = set()
        for workload, system, ratio in ratios(figures):
            counted.add((system, workload))
            threshold = known[version].get(system, {}).get(workload)
            if threshold is None:
                verdict, failures = "NOT RECORDED", failures + 1
            elif ratio > threshold * (1 + TOLERANCE):
                verdict, failures = "WORSE", failures + 1
            elif ratio < threshold * (1 - TOLERANCE):
                verdict = "better: record it"
            else:
                verdict = "as recorded"
            limit = f"{threshold:.3f}" if threshold else "-"
            print(f"{version:8} {workload:8} {system:18} {ratio:8.3f} threshold {limit:>8}  {verdict}")
        failures += tool.check(figures.engine, tool.count(figures.engine), known[version])
        systems = [system for system in known[version] if system not in tool.UNITS]
        recorded = {(system, workload) for system in systems for workload in known[version][system]}
        for system, workload in sorted(recorded - counted):
            failures += 1
            print(f"{version:8} {workload:8} {system:18} is recorded but was NOT COUNTED")
    return 1 if failures else 0
