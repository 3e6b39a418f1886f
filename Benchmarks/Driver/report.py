"""Writes what was measured: latest.json, the table, the plots, and the figures of README.md."""

import json
import os
import platform
import re
from pathlib import Path

import plots
from systems import ALL_WORKLOADS, HOME, LATENCY, UNENCRYPTED, WORKLOADS, say

RESULTS = HOME / "results"
LATEST = RESULTS / "latest.json"
DETAILS = RESULTS / "details.json"
TABLE = RESULTS / "latest.md"
README = HOME / "README.md"
MAIN_README = HOME.parent / "README.md"

WORDS = {
    "W1": "W1 insert", "W2": "W2 fetch all", "W2d": "W2d fetch all, 2 MB cache", "W3": "W3 lookup by key",
    "W4": "W4 update by key", "W5-put": "W5 put", "W5-get": "W5 get", "W6-single": "W6 durable writes",
    "W6-async64": "W6 durable writes, 64 at once", "open-raw": "open, raw key",
    "open-passphrase": "open, passphrase", "open-pool-raw": "open writer and 4 readers, raw key",
    "open-pool-passphrase": "open writer and 4 readers, passphrase", "rekey": "rekey", "verify": "verify",
    "blob-in": "blobs in", "blob-out": "blobs out",
}
IN_MEGABYTES = {"rekey", "verify", "blob-in", "blob-out"}
# What has a time for each unit of work; growth and latencies have tables of their own.
COMPARED = [name for name in ALL_WORKLOADS if not name.startswith("growth") and name not in LATENCY]


def machine():
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = found.group(1) if found else model
    release = platform.system() + " " + platform.release()
    if Path("/etc/os-release").exists():
        release = re.search(r'PRETTY_NAME="?([^"\n]+)', Path("/etc/os-release").read_text()).group(1)
    return {"processor": model, "cores": os.cpu_count(), "system": release}


def read():
    """The figures of all workloads, and those of adoption, which are measured apart."""
    objects = json.loads(LATEST.read_text()) if LATEST.exists() else []
    return [entry for entry in objects if "adoption" not in entry], [entry for entry in objects if "adoption" in entry]


def write_latest(objects):
    RESULTS.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in objects)
    LATEST.write_text(f"[\n{lines}\n]\n")


def write_adoption(figure):
    """In the place of what was known of the same program."""
    objects, adoption = read()
    write_latest(objects + [entry for entry in adoption if entry["system"] != figure["system"]] + [figure])


def write(all_figures):
    adoption = read()[1]
    write_latest([entry for figures in all_figures for entry in figures.objects()] + adoption)
    details = {
        "machine": machine(),
        "settings": {figures.engine.version: figures.settings for figures in all_figures},
        "skipped": {figures.engine.version: figures.engine.skipped for figures in all_figures},
    }
    DETAILS.write_text(json.dumps(details, indent=2) + "\n")
    write_reports()


def write_reports():
    (objects, _), details = read(), json.loads(DETAILS.read_text())
    TABLE.write_text(table(objects, details))
    written = [TABLE.name, LATEST.name]
    for engine in engines(objects):
        of_engine = [entry for entry in objects if entry["engine"] == engine]
        for name, picture in plots.all_of(engine, of_engine):
            if picture:
                (RESULTS / name).write_text(picture)
                written.append(name)
    say("wrote " + ", ".join(written) + f" in {RESULTS.relative_to(HOME.parent)}")


def engines(objects):
    return list(dict.fromkeys(entry["engine"] for entry in objects))


# Words and numbers


def short(value):
    """Three digits are all that two noisy cores can tell."""
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cost(entry):
    """The time of one unit, with its name."""
    workload, median, rows = entry["workload"], entry["median_us"], entry["rows"]
    if workload in IN_MEGABYTES:
        return f"{short(rows / median * 1e6)} MB/s"
    if workload.startswith("open"):
        return f"{short(median / 1e3)} ms"
    return f"{short(median / rows)} µs"


def spread(entry):
    return f"{(entry['median_us'] / entry['min_us'] - 1) * 100:.0f} %"


def shown(system):
    return f"*{system}*" if system in UNENCRYPTED else system


def times(value):
    return "-" if value is None else short(value)


# The table


def table(objects, details):
    facts = details["machine"]
    parts = ["# Benchmarks: the last run", "",
             f"Machine: {facts['processor']}, {facts['cores']} cores, {facts['system']}.", "",
             "Time is that of one row, the median; *spread* is how far the median lies above the fastest run. "
             "*Ratio* is to plain C on the same SQLCipher in the same run, in time and in instructions; "
             "*extra* is the instructions per row above plain C's. What is not encrypted is in italics.", ""]
    for engine in engines(objects):
        parts += [f"## SQLCipher {engine}", ""]
        for kind, settings in details["settings"].get(engine, {}).items():
            parts.append(f"Settings, {kind}: " + ", ".join(f"{key} {value}" for key, value in settings.items()) + ".  ")
        for system, reason in details["skipped"].get(engine, {}).items():
            parts.append(f"Skipped: {system}, {reason}.  ")
        of_engine = [entry for entry in objects if entry["engine"] == engine]
        parts += ["", *comparison(of_engine), "", *latencies(of_engine), *growth(of_engine), ""]
    return "\n".join(parts)


def comparison(objects):
    yield "| Workload | System | Time | Spread | Ratio, time | Ratio, instructions | Extra | Runs |"
    yield "|---|---|---|---|---|---|---|---|"
    for workload in COMPARED:
        found = {entry["system"]: entry for entry in objects if entry["workload"] == workload}
        for system in [name for name in WORKLOADS if name in found]:
            entry = found[system]
            name = shown(system)
            extra = entry["extra_instructions_per_row"]
            cells = [WORDS[workload], name, cost(entry), spread(entry), times(entry["ratio_to_c"]),
                     times(entry["instructions_ratio_to_c"]), "-" if extra is None else f"{extra}", str(entry["runs"])]
            yield "| " + " | ".join(cells) + " |"


def latencies(objects):
    """Ends with an empty line, if there are any."""
    rows = [entry for entry in objects if "percentiles_us" in entry]
    if not rows:
        return
    heads = [head for _, head in plots.PERCENTILES.values()]
    yield "| Latency under load | System | " + " | ".join(heads) + " | Calls |"
    yield "|---" * (len(heads) + 3) + "|"
    for entry in sorted(rows, key=lambda entry: LATENCY.index(entry["workload"])):
        words, unit = plots.LATENCIES[entry["workload"]]
        cells = [short(entry["percentiles_us"][name] / unit) for name in plots.PERCENTILES]
        yield "| " + " | ".join([words, shown(entry["system"]), *cells, f"{entry['rows']:.0f}"]) + " |"
    yield ""


def growth(objects):
    rows = [entry for entry in objects if entry["workload"].startswith("growth")]
    if not rows:
        return
    yield "| Growth | System | Rows | Time | Ratio, time |"
    yield "|---|---|---|---|---|"
    for entry in sorted(rows, key=lambda entry: (ALL_WORKLOADS.index(entry["workload"]), entry["rows"])):
        kind = entry["workload"].removeprefix("growth-")
        yield (f"| {kind} | {entry['system']} | {entry['rows']:,.0f} | {growth_cost(entry)} "
               f"| {times(entry['ratio_to_c'])} |").replace(",", " ")


def growth_cost(entry):
    value, unit = plots.growth_value(entry)
    return f"{short(value)} {unit}"


# README.md: what is between the marks is generated


def write_readme():
    (objects, adoption), details = read(), json.loads(DETAILS.read_text())
    fill(README, figures=figures(objects), machine=machine_lines(details), adoption=adoption_lines(adoption))
    fill(MAIN_README, speed=main_summary(objects))


def fill(path, **parts):
    text = path.read_text()
    for mark, lines in parts.items():
        pattern = rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)"
        text = re.sub(pattern, lambda found: found.group(1) + "\n".join(lines) + "\n" + found.group(2), text, flags=re.S)
    path.write_text(text)


IN_MAIN = ["W1", "W2", "W3", "W4", "W5-put", "W5-get", "W6-single", "W6-async64", "open-pool-passphrase"]
GRDB = {"grdb-codable": "GRDB, records", "grdb-hand": "GRDB, coded by hand", "grdb-cached": "GRDB, cached statement"}


def main_summary(objects):
    """Times to plain C; bold is who was faster than Coffer. GRDB runs on SQLCipher 4 only."""
    newest = max(engines(objects))
    others = [engine for engine in engines(objects) if engine != newest]
    heads = [f"Coffer, {newest}", *GRDB.values(), *(f"Coffer, {engine}" for engine in others)]
    yield "| Time, plain C = 1 | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    known = {(entry["engine"], entry["workload"], entry["system"]): entry["ratio_to_c"] for entry in objects}
    for workload in IN_MAIN:
        own = MAIN.get(workload, "coffer-record")
        ours = known[newest, workload, own]
        cells = [times(ours)]
        for system in GRDB:
            ratio = known.get((newest, workload, system))
            text = "" if ratio is None else times(ratio)
            cells.append(f"**{text}**" if ratio is not None and ratio < ours else text)
        cells += [times(known[engine, workload, own]) for engine in others]
        yield f"| {WORDS[workload]} | " + " | ".join(cells) + " |"


def machine_lines(details):
    facts = details["machine"]
    yield f"{facts['processor']}, {facts['cores']} cores shared with others, {facts['system']}."


def figures(objects):
    """Coffer beside plain C and the rivals; bold where Coffer is slower than a system."""
    for engine in engines(objects):
        of_engine = [entry for entry in objects if entry["engine"] == engine]
        yield f"### SQLCipher {engine}"
        yield ""
        yield from summary(of_engine)
        yield ""
        yield "| Workload | Plain C | Coffer | To C, time | To C, instructions | Spread | Rivals, to C in time |"
        yield "|---|---|---|---|---|---|---|"
        for workload in COMPARED:
            found = {entry["system"]: entry for entry in of_engine if entry["workload"] == workload}
            if "c-sqlcipher" not in found:
                continue
            for system in [name for name in found if name.startswith("coffer")]:
                yield figure(workload, found, system)
        yield ""
        yield from latencies(of_engine)


MAIN = {"W5-put": "coffer-bucket", "W5-get": "coffer-bucket", "blob-in": "coffer-bucket", "blob-out": "coffer-bucket"}


def summary(objects):
    """How many times Coffer's time each system takes; bold where that is less than once."""
    names = [name for name in COMPARED if not name.startswith(("open-raw", "open-pool-raw"))]
    yield "| Their time in Coffer's | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for system in [name for name in WORKLOADS if not name.startswith("coffer")]:
        cells, found = [], False
        for workload in names:
            times_of = {entry["system"]: entry["median_us"] for entry in objects if entry["workload"] == workload}
            ours = times_of.get(MAIN.get(workload, "coffer-record"))
            if ours is None or system not in times_of:
                cells.append("")
                continue
            found, ratio = True, times_of[system] / ours
            cells.append(f"**{ratio:.2f}**" if ratio < 0.995 else f"{ratio:.1f}")
        if found:
            yield f"| {shown(system)} | " + " | ".join(cells) + " |"
    yield ""
    yield "Coffer is `coffer-record` here, and `coffer-bucket` for W5 and blobs."


def figure(workload, found, system):
    entry = found[system]
    rivals = []
    for name, rival in found.items():
        if name.startswith("coffer") or name == "c-sqlcipher":
            continue
        text = f"{name} {times(rival['ratio_to_c'])}"
        text = f"*{text}*" if name in UNENCRYPTED else text
        rivals.append(f"**{text}**" if rival["median_us"] < entry["median_us"] else text)
    ratio = times(entry["ratio_to_c"])
    ratio = f"**{ratio}**" if entry["ratio_to_c"] > 1.05 else ratio
    cells = [WORDS[workload], cost(found["c-sqlcipher"]), f"{cost(entry)} ({system.removeprefix('coffer-')})", ratio,
             times(entry["instructions_ratio_to_c"]), spread(entry), ", ".join(rivals)]
    return "| " + " | ".join(cells) + " |"


def adoption_lines(entries):
    if not entries:
        yield "Not measured yet."
        return
    yield "| Program | Stripped | Libraries it adds | Clean build, release | debug | After a change, release | debug | Query's types | Load |"
    yield "|---" * 9 + "|"
    for entry in entries:
        facts = entry["adoption"]
        cells = [entry["system"], f"{facts['stripped_bytes'] / 1e6:.2f} MB", ", ".join(facts["libraries_added"]) or "-"]
        cells += [f"{facts[f'{kind}_{configuration}_s']:.1f} s" for kind in ("clean", "changed")
                  for configuration in ("release", "debug")]
        cells += ["-" if facts["query_ms"] is None else f"{facts['query_ms']:.1f} ms", f"{facts['load_average']:.1f}"]
        yield "| " + " | ".join(cells) + " |"
