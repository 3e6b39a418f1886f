"""Writes what was measured of replicas: replica.json, and the tables of Documentation/performance.md."""

import json

import report
from replica_plan import IDLE_SECONDS, PAGE, SHIPPED

LATEST = report.RESULTS / "replica.json"
PAGES = report.HOME.parent / "Documentation/performance.md"
MEGABYTE, MEBIBYTE = 1e6, 1 << 20


def write(figures):
    ran = {"date": report.output(["date", "-u", "+%F %H:%M"]), "machine": report.machine(),
           "commit": report.output(["git", "-C", str(report.HOME), "rev-parse", "--short", "HEAD"])}
    LATEST.write_text(json.dumps(ran | figures, indent=2) + "\n")
    report.fill(PAGES, replicas=list(lines(ran | figures)))


def lines(figures):
    machine, ours, theirs = figures["machine"], figures["coffer"], figures.get("litestream")
    yield (f"{machine['processor']}, {machine['cores']} cores shared with others, {machine['system']}, SQLCipher {figures['engine']}; "
           f"load {figures['load_before']:.1f} before and {figures['load_after']:.1f} after; {figures['date']} UTC, commit {figures['commit']}.")
    yield ""
    yield f"| | Goal | Coffer | Litestream {theirs['version'] if theirs else ''}, plaintext |"
    yield "|---" * 4 + "|"
    for words, goal, of in rows(figures):
        cells = [of(system) if system else "not installed" for system in [ours, theirs]]
        yield f"| {words} | {goal} | " + " | ".join(cells) + " |"


def rows(figures):
    """The words of each row, its goal, and what it says of a system."""
    size = f"{figures['gigabytes']} GB"
    for name, words in [("small", "1 MB"), ("large", size)]:
        yield f"commits of one row, {words}: median without and with", "≤ 1.05 x", lambda of, name=name: commits(of[name], "median", 1.05)
        yield "the same, 99 of 100", "", lambda of, name=name: commits(of[name], "p99")
    yield f"bytes for a row, of {SHIPPED} in one pass, to pages x (page + 4)", "≤ 1.05 x", ship
    yield f"first transfer, {size}", "", lambda of: rate(of["file_bytes"], of["copy"]["seconds"])
    yield f"restore, {size}", "≥ 200 MB/s, or ≤ 1.2 x the download", restore
    yield f"snapshot, {size}: most memory, and bytes staged", "< 64 MiB, 0", snapshot
    yield f"objects put in {IDLE_SECONDS} s without a commit, {size}", "0", idle
    yield f"a pass that sends one page, {size}", "", a_pass
    for name, words in [("nothing", "a process without a store"), ("stores", "500 stores"), ("replicas", "500 stores that replicate, a commit a second each")]:
        yield words, "told", lambda of, name=name: use(of["fleet"].get(name))


def marked(text, is_reached):
    return text if is_reached else f"**{text}**"


def commits(of, name, limit=None):
    alone, replicated = of["alone"][name], of["replicated"][name]
    ratio = replicated / alone
    return f"{report.short(alone)} and {report.short(replicated)} µs, " + marked(f"{ratio:.2f} x", not limit or ratio <= limit)


def ship(of):
    sent, pages = of["ship"]["bytes"], of["ship"]["pages"]
    ratio = sent / (pages * (PAGE + 4))
    return f"{sent / SHIPPED:,.0f} B, {pages} pages, ".replace(",", " ", 1) + marked(f"{ratio:.3f} x", ratio <= 1.05)


def rate(count, seconds):
    return f"{count / MEGABYTE / seconds:.0f} MB/s"


def restore(of):
    seconds, text = of["restore"]["seconds"], rate(of["file_bytes"], of["restore"]["seconds"])
    if "download" not in of["restore"]:
        return text
    ratio = seconds / of["restore"]["download"]
    is_reached = of["file_bytes"] / MEGABYTE / seconds >= 200 or ratio <= 1.2
    return marked(text, is_reached) + f", {ratio:.1f} x the download; {of['restore']['cpu']:.1f} s of CPU"


def snapshot(of):
    if "snapshot" not in of:
        return "not measured"
    found = of["snapshot"]
    return (marked(f"{found['peak'] / MEBIBYTE:.0f} MiB", found["peak"] < 64 * MEBIBYTE) + f" ({found['rest'] / MEBIBYTE:.0f} before), "
            + marked(f"{found['staged']} B", found["staged"] == 0) + f", {rate(of['file_bytes'], found['seconds'])}")


def idle(of):
    puts = of["idle"]["puts"]
    return marked(f"{puts}", puts == 0) + f"; {of['idle']['cpu']:.2f} s of CPU"


def a_pass(of):
    return f"{of['pass']['cpu'] * 1e3:.0f} ms of CPU" if "pass" in of else "not measured"


def use(of):
    if of is None:
        return ""
    busy = f", {of['cpu'] / of['seconds'] * 100:.0f} % of a core" if of["seconds"] > 1 else ""
    return f"{of['threads']} threads, {of['descriptors']} descriptors, {of['memory'] / MEBIBYTE:.0f} MiB{busy}"
