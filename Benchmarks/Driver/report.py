"""Writes what was measured: latest.json, the table, the plots, and the figures of README.md."""

import json
import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

import plots
from systems import ALL_WORKLOADS, BESIDE, DURABLE, FLEET, HOME, IN_PLACE, LATENCY, OBSERVERS, ROTATION, SERVE, SWEEP, UNAUTHENTICATED, UNENCRYPTED, WATCH, WORKLOADS, say

RESULTS = HOME / "results"
LATEST = RESULTS / "latest.json"
DETAILS = RESULTS / "details.json"
TABLE = RESULTS / "latest.md"
README = HOME / "README.md"
MAIN_README = HOME.parent / "README.md"

WORDS = {
    "W1": "W1 insert", "W2": "W2 fetch all", "W2d": "W2d fetch all, 2 MB cache", "W3": "W3 lookup by key",
    "W3-many": "W3-many lookup of many keys (C: one by one)", "W4": "W4 update by key", "W5-put": "W5 put", "W5-get": "W5 get", "W5-get-integers": "W5 get, integers", "W5-get-bytes": "W5 get, [UInt8]", "W5-get-default": "W5 get, default page cache", "W5-get-each": "W5 get, a read for each", "W5-get-many": "W5 get, 1 000 in each read", "W5-keys": "W5 scan of keys", "W5-entries": "W5 scan of entries", "W1-bind": "W1-bind insert, bytes as they are", "W2-borrow": "W2-borrow read in place",
    "W6-single": "W6 durable writes",
    "W6-async64": "W6 durable writes, 64 at once (C: one commit each)", "W6-set64": "W6 durable sets of entries, 64 at once (C: one commit each)", "read-one": "lookups, a read for each", "read-empty": "reads of nothing", "open-raw": "open, raw key",
    "open-passphrase": "open, passphrase", "open-pool-raw": "open writer and 4 readers, raw key",
    "open-pool-passphrase": "open writer and 4 readers, passphrase", "rekey": "rekey", "rotate-pause": "rotation: the pause of writes (C: bare rekey)", "rotate-move": "rotation without its checks (C: rekey and checkpoint)", "rotate": "rotation (C: rekey between two checks)", "fleet": "rotation of 3 000 stores by the tool, two at once (C: rekeys, one by one)", "verify": "verify", "compact": "compact (C: VACUUM, which checks nothing)",
    "blob-in": "blobs in", "blob-out": "blobs out", "attach-in": "attachment in (C: sqlite3_blob and SHA-256)", "attach-out": "attachment out (C: sqlite3_blob and SHA-256)",
    "flights-import": "flights, import", "flights-fetch": "flights, fetch all", "flights-questions": "flights, the questions",
    "refs-left": "LEFT JOIN", "refs-all": "all children of some rows", "refs-group": "groups with three aggregates",
}
IN_MEGABYTES = {"rekey", *ROTATION, *FLEET, "verify", "compact", "blob-in", "blob-out", "attach-in", "attach-out"}
# What has a time for each unit of work; growth and latencies have tables of their own.
APART = LATENCY + BESIDE + SWEEP + SERVE + OBSERVERS + WATCH + ["idle"]
COMPARED = [name for name in ALL_WORKLOADS if not name.startswith("growth") and name not in APART]


def machine():
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = found.group(1) if found else model
    release = platform.system() + " " + platform.release()
    if Path("/etc/os-release").exists():
        release = re.search(r'PRETTY_NAME="?([^"\n]+)', Path("/etc/os-release").read_text()).group(1)
    return {"processor": model, "cores": os.cpu_count(), "system": release}


def what_ran(all_figures):
    """All that a reader needs to know of the run to compare it with another."""
    resolved = json.loads((HOME / "Package.resolved").read_text())["pins"]
    packages = {pin["identity"]: pin["state"].get("version") for pin in resolved}
    # GRDB is behind a trait, and so not always resolved.
    packages.update(re.findall(r'([\w.]+)", exact: "([\w.]+)"', (HOME / "Package.swift").read_text()))
    engine = all_figures[0].engine
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(HOME), "describe", "--always", "--dirty", "--abbrev=40"]),
        "file_system": output(["stat", "-f", "-c", "%T", str(engine.stores)]),
        "compilers": {name: output([command, "--version"]) for name, command in
                      [("c", engine.environment.get("CC", "cc")), ("swift", "swift")]},
        "packages": packages,
        "versions": {figures.engine.version: figures.versions for figures in all_figures},
    }


def output(command):
    """The first line that a tool prints; where there is no such tool, that."""
    try:
        lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
    except FileNotFoundError:
        lines = []
    return lines[0] if lines else "unknown"


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


def replace(all_figures):
    """Takes the place of the figures of the same workloads, and says when that was."""
    objects, adoption = read()
    new = [entry for figures in all_figures for entry in figures.objects()]
    workloads = {entry["workload"] for entry in new}
    kept = [entry for entry in objects if entry["workload"] not in workloads]
    # As one run would have them: by engine, then by workload.
    merged = sorted(kept + new, key=lambda entry: (entry["engine"], ALL_WORKLOADS.index(entry["workload"])))
    write_latest(merged + adoption)
    details = json.loads(DETAILS.read_text())
    ran = what_ran(all_figures)
    earlier = [entry for entry in details.get("later", []) if not set(entry["workloads"]) <= workloads]
    details["later"] = earlier + [{"workloads": sorted(workloads, key=ALL_WORKLOADS.index), "date": ran["date"], "commit": ran["commit"]}]
    DETAILS.write_text(json.dumps(details, indent=2) + "\n")
    write_reports()


def measured_later(details):
    for entry in details.get("later", []):
        names = ", ".join(entry["workloads"])
        yield f"Measured later than the rest, on {entry['date'][:10]} at commit {entry['commit'][:7]}: {names}."
        yield ""


def write(all_figures):
    adoption = read()[1]
    write_latest([entry for figures in all_figures for entry in figures.objects()] + adoption)
    details = {
        "machine": machine(),
        "run": what_ran(all_figures),
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
    if workload.startswith("open") or workload == "flights-questions":
        return f"{short(median / 1e3)} ms"
    return f"{short(median / rows)} µs"


def spread(entry):
    return f"{(entry['median_us'] / entry['min_us'] - 1) * 100:.0f} %"


def ratios(entry, other):
    """Of the medians, and of the minimums: noise rarely moves both to the same side."""
    return entry["median_us"] / other["median_us"], entry["min_us"] / other["min_us"]


def marked(text, entry, other, limit=1.0):
    """Bold if the entry is faster than the other by both ratios; "≈" if they contradict each other."""
    is_faster = [ratio < limit for ratio in ratios(entry, other)]
    return f"**{text}**" if all(is_faster) else f"≈ {text}" if any(is_faster) else text


def versions_of_plain(engine, details):
    """What else differs between the two systems in C: the price of encryption is not all of it."""
    versions = details.get("run", {}).get("versions", {}).get(engine, {})
    names = ["c-sqlcipher", "c-sqlite"]
    if all("sqlite_version" in versions.get(name, {}) for name in names):
        encrypted, plain = (versions[name]["sqlite_version"] for name in names)
        yield f"SQLCipher {engine} is SQLite {encrypted}, but *c-sqlite* is SQLite {plain} as the system built it."
        yield ""


def shown(system):
    return f"*{system}*" if system in UNENCRYPTED else f"{system} †" if system in UNAUTHENTICATED else system


def times(value):
    return "-" if value is None else short(value)


# The table


def table(objects, details):
    facts = details["machine"]
    parts = ["# Benchmarks: the last run", "",
             f"Machine: {facts['processor']}, {facts['cores']} cores, {facts['system']}.", "", *measured_later(details),
             "Time is that of one row, the median; *spread* is how far the median lies above the fastest run. "
             "*Ratio* is to plain C on the same SQLCipher in the same run: of the medians, of the fastest runs, and of "
             "instructions; "
             "*extra* is the instructions per row above plain C's. What is not encrypted is in italics. "
             "† encrypts without authentication, and syncs no write.", ""]
    for engine in engines(objects):
        parts += [f"## SQLCipher {engine}", ""]
        for kind, settings in details["settings"].get(engine, {}).items():
            parts.append(f"Settings, {kind}: " + ", ".join(f"{key} {value}" for key, value in settings.items()) + ".  ")
        for system, reason in details["skipped"].get(engine, {}).items():
            parts.append(f"Skipped: {system}, {reason}.  ")
        of_engine = [entry for entry in objects if entry["engine"] == engine]
        parts += from_checkouts(of_engine)
        parts += ["", *versions_of_plain(engine, details), *comparison(of_engine), "", *of_the_queue(of_engine), *growth(of_engine), ""]
    return "\n".join(parts)


def from_checkouts(objects):
    """What no registry names by a version."""
    for system, entry in {entry["system"]: entry for entry in objects if "commit" in entry}.items():
        runtime = f", on {entry['runtime']}" if "runtime" in entry else ""
        yield f"From a checkout: {system}, version {entry['version']}, commit {entry['commit']}{runtime}.  "


def comparison(objects):
    yield "| Workload | System | Time | Spread | Ratio, time | Ratio, fastest | Ratio, instructions | Extra | Runs |"
    yield "|---" * 9 + "|"
    for workload in COMPARED:
        found = {entry["system"]: entry for entry in objects if entry["workload"] == workload}
        for system in [name for name in WORKLOADS if name in found]:
            entry = found[system]
            name = shown(system)
            extra = entry["extra_instructions_per_row"]
            fastest = ratios(entry, found["c-sqlcipher"])[1] if "c-sqlcipher" in found else None
            cells = [WORDS[workload], name, cost(entry), spread(entry), times(entry["ratio_to_c"]), times(fastest),
                     times(entry["instructions_ratio_to_c"]), "-" if extra is None else f"{extra}", str(entry["runs"])]
            yield "| " + " | ".join(cells) + " |"


def latencies(objects):
    """Ends with an empty line, if there are any."""
    rows = [entry for entry in objects if "percentiles_us" in entry]
    if not rows:
        return
    heads = [head for _, head in plots.PERCENTILES.values()]
    yield "| Latency | System | " + " | ".join(heads) + " | Calls |"
    yield "|---" * (len(heads) + 3) + "|"
    units = plots.LATENCIES | plots.BESIDE
    for entry in sorted(rows, key=lambda entry: (LATENCY + BESIDE + SWEEP + SERVE + OBSERVERS).index(entry["workload"])):
        words, unit = units[entry["workload"]]
        cells = [short(entry["percentiles_us"][name] / unit) if name in entry["percentiles_us"] else "" for name in plots.PERCENTILES]
        yield "| " + " | ".join([words, shown(entry["system"]), *cells, f"{entry['rows']:.0f}"]) + " |"
    yield ""


def durable(objects):
    """What a write that survives power loss costs, by how often the disk was asked. Ends with an empty line."""
    rows = [entry for entry in objects if "syncs_per_row" in entry]
    if not rows:
        return
    yield "| Durable writes | System | Writes a second | fsync calls for 100 writes | To C, one commit each |"
    yield "|---" * 5 + "|"
    names = {"W6-single": "one after the other", "W6-async64": "64 at once", "W6-set64": "64 sets of an entry at once"}
    for entry in sorted(rows, key=lambda entry: DURABLE.index(entry["workload"])):
        cells = [names[entry["workload"]], shown(entry["system"]), short(entry["rows"] / entry["median_us"] * 1e6),
                 short(entry["syncs_per_row"] * 100), short(1 / entry["ratio_to_c"]) + " x"]
        yield "| " + " | ".join(cells) + " |"
    yield ""


WATCHERS = {"watch-nobody": "nobody watches", "watch-value": "a value is observed",
            "watch-changes": "changes are followed row by row", "watch-log": "changes are logged"}


def watched(objects):
    """Ends with an empty line, if there is any."""
    found = {(entry["workload"], entry["system"]): entry for entry in objects if entry["workload"] in WATCH}
    if not found:
        return
    yield "| Insert in transactions of 100 rows | Time of a row | Spread | To C |"
    yield "|---" * 4 + "|"
    for (workload, system), entry in found.items():
        if system == "c-sqlcipher" and workload != "watch-nobody":
            continue
        cells = [f"{system}, {WATCHERS[workload]}", cost(entry), spread(entry), times(entry["ratio_to_c"])]
        yield "| " + " | ".join(cells) + " |"
    yield ""


def idle(objects):
    """Ends with an empty line, if there is any."""
    rows = [entry for entry in objects if "idle" in entry]
    if not rows:
        return
    yield "| Open and idle | Stores | To open one | Memory of one | Descriptors of one | Threads of all |"
    yield "|---" * 6 + "|"
    for entry in rows:
        facts, count = entry["idle"], entry["rows"]
        cells = [shown(entry["system"]), f"{count:.0f}", f"{short(entry['median_us'] / count / 1e3)} ms",
                 f"{short(facts['bytes'] / count / 1e3)} kB", short(facts["descriptors"] / count), f"{facts['threads']:.0f}"]
        yield "| " + " | ".join(cells) + " |"
    yield ""


def of_the_queue(objects):
    yield from durable(objects)
    yield from latencies(objects)
    yield from watched(objects)
    yield from idle(objects)


def growth(objects):
    rows = [entry for entry in objects if entry["workload"].startswith("growth")]
    if not rows:
        return
    yield "| Growth | System | Rows | Time | Spread | Ratio, time | Runs |"
    yield "|---" * 7 + "|"
    for entry in sorted(rows, key=lambda entry: (ALL_WORKLOADS.index(entry["workload"]), entry["rows"])):
        kind = entry["workload"].removeprefix("growth-")
        yield (f"| {kind} | {entry['system']} | {entry['rows']:,.0f} | {growth_cost(entry)} "
               f"| {spread(entry)} | {times(entry['ratio_to_c'])} | {entry['runs']} |").replace(",", " ")


def growth_cost(entry):
    value, unit = plots.growth_value(entry)
    return f"{short(value)} {unit}"


# README.md: what is between the marks is generated


def write_readme():
    (objects, adoption), details = read(), json.loads(DETAILS.read_text())
    fill(README, figures=figures(objects, details), machine=machine_lines(details), adoption=adoption_lines(adoption))
    fill(MAIN_README, speed=main_summary(objects), faster=faster(objects))


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
    known = {(entry["engine"], entry["workload"], entry["system"]): entry for entry in objects}
    for workload in IN_MAIN:
        own = MAIN.get(workload, "coffer-record")
        ours = known[newest, workload, own]
        cells = [times(ours["ratio_to_c"])]
        for system in GRDB:
            rival = known.get((newest, workload, system))
            cells.append(marked(times(rival["ratio_to_c"]), rival, ours) if rival else "")
        cells += [times(known[engine, workload, own]["ratio_to_c"]) for engine in others]
        yield f"| {WORDS[workload]} | " + " | ".join(cells) + " |"


# Systems that do less than Coffer, and the difference. A system that is not named here does as much.
GIVEN_UP = {
    "c-sqlite": "encryption; it is plain SQLite, called from C",
    "lmdb": "encryption and queries: keys and values only, called from C",
    "rocksdb": "encryption and queries: keys and values only, called from C",
    "mmkv": "authentication, durability and queries: keys and values only, all in memory, called from C++",
}
# Plain C on SQLCipher is the 1 of all ratios, and swift-c is C in Swift's words.
FLOORS = ["c-sqlcipher", "c-values", "c-grouped", "c-checked", "swift-c"]


def faster(objects):
    """Everybody who is faster than Coffer, at what, by how much, and what they give up for it."""
    found = {}
    for engine in engines(objects):
        for workload in COMPARED:
            entries = {entry["system"]: entry for entry in objects
                       if entry["workload"] == workload and entry["engine"] == engine}
            own = [entry for name, entry in entries.items() if name.startswith("coffer") and name != "coffer-ungrouped"]
            for system in [name for name in entries if not name.startswith("coffer") and name not in FLOORS]:
                ours = min(own, key=lambda entry: entry["median_us"], default=None)
                if ours is None or not all(ratio < 0.95 for ratio in ratios(entries[system], ours)):
                    continue
                ratio = ours["median_us"] / entries[system]["median_us"]
                found.setdefault(system, {}).setdefault(WORDS[workload], []).append((engine, ratio))
    yield "| Faster than Coffer | at, and how many times | gives up |"
    yield "|---" * 3 + "|"
    for system in [name for name in WORKLOADS if name in found]:
        at = "; ".join(f"{words} " + ", ".join(f"{short(ratio)} ({engine})" for engine, ratio in of_words)
                       for words, of_words in found[system].items())
        yield f"| {shown(system)} | {at} | {GIVEN_UP.get(system, 'nothing')} |"


def machine_lines(details):
    facts = details["machine"]
    yield f"{facts['processor']}, {facts['cores']} cores shared with others, {facts['system']}."


def figures(objects, details):
    """Coffer beside plain C and the rivals; bold where Coffer is slower than a system."""
    yield from measured_later(details)
    for engine in engines(objects):
        of_engine = [entry for entry in objects if entry["engine"] == engine]
        yield f"### SQLCipher {engine}"
        yield ""
        yield from summary(of_engine)
        yield ""
        yield from versions_of_plain(engine, details)
        yield "| Workload | Plain C | Spread | Coffer | Spread | To C, time | To C, fastest | To C, instructions | Rivals, to C in time |"
        yield "|---" * 9 + "|"
        for workload in COMPARED:
            found = {entry["system"]: entry for entry in of_engine if entry["workload"] == workload}
            if "c-sqlcipher" not in found:
                continue
            for system in [name for name in found if name.startswith("coffer")]:
                yield figure(workload, found, system)
        yield ""
        yield from of_the_queue(of_engine)


MAIN = {**{name: "coffer-keyring" for name in ROTATION}, "fleet": "coffer-tool", "W5-put": "coffer-bucket", "W5-get": "coffer-bucket", "W5-get-integers": "coffer-bucket", "W5-get-bytes": "coffer-bucket", "W5-get-default": "coffer-bucket", "W6-set64": "coffer-bucket", "W5-get-each": "coffer-bucket", "W5-get-many": "coffer-bucket", "W5-keys": "coffer-bucket", "W5-entries": "coffer-bucket", "blob-in": "coffer-bucket", "blob-out": "coffer-bucket", "attach-in": "coffer-bucket", "attach-out": "coffer-bucket"}


def summary(objects):
    """How many times Coffer's time each system takes; bold where that is less than once."""
    names = [name for name in COMPARED
             if not name.startswith(("open-raw", "open-pool-raw")) and name not in IN_PLACE]
    yield "| Their time in Coffer's | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for system in [name for name in WORKLOADS if not name.startswith("coffer")]:
        cells, found = [], False
        for workload in names:
            entries = {entry["system"]: entry for entry in objects if entry["workload"] == workload}
            ours, theirs = entries.get(MAIN.get(workload, "coffer-record")), entries.get(system)
            if ours is None or theirs is None:
                cells.append("")
                continue
            found, ratio = True, ratios(theirs, ours)[0]
            text = f"{ratio:.2f}" if ratio < 0.995 else f"{ratio:.1f}"
            cells.append(marked(text, theirs, ours, limit=0.995))
        if found:
            yield f"| {shown(system)} | " + " | ".join(cells) + " |"
    yield ""
    yield "Coffer is `coffer-record` here, `coffer-bucket` for W5 and blobs, `coffer-keyring` for rotations."


def figure(workload, found, system):
    entry = found[system]
    rivals = []
    for name, rival in found.items():
        if name.startswith("coffer") or name == "c-sqlcipher":
            continue
        text = f"{name} {times(rival['ratio_to_c'])}"
        text = f"*{text}*" if name in UNENCRYPTED else f"{text} †" if name in UNAUTHENTICATED else text
        rivals.append(marked(text, rival, entry))
    floor = found["c-sqlcipher"]
    # C has to be faster by more than a twentieth.
    cells = [WORDS[workload], cost(floor), spread(floor), f"{cost(entry)} ({system.removeprefix('coffer-')})", spread(entry),
             marked(times(entry["ratio_to_c"]), floor, entry, limit=1 / 1.05), times(ratios(entry, floor)[1]),
             times(entry["instructions_ratio_to_c"]), ", ".join(rivals)]
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
