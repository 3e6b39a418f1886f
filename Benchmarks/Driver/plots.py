"""Small SVG pictures: ratio bars, growth curves and latencies, all on log axes."""

import math
from xml.sax.saxutils import escape

from systems import UNENCRYPTED, WORKLOADS

# Okabe and Ito's colours, told apart by the colour-blind and, by their lightness and the marks, on grey paper.
COLOURS = {
    "c-sqlcipher": "#000000", "c-values": "#1f1f1f", "c-grouped": "#3a3a3a", "c-checked": "#555555", "c-sqlite": "#b0b0b0", "swift-c": "#6b6b6b",
    "coffer-record": "#0072b2", "coffer-connection": "#56b4e9", "coffer-bucket": "#004a75", "coffer-cached": "#002f4a", "coffer-keyring": "#3d7ea6", "coffer-tool": "#2a6f97", "coffer-fast": "#009e73", "coffer-ungrouped": "#7fb8d8",
    "grdb-codable": "#d55e00", "grdb-hand": "#e69f00", "grdb-cached": "#f0c86e",
    "sqliteswift-typed": "#8c510a", "sqliteswift-sql": "#c9995c", "fmdb": "#7b3294", "mmkv": "#a6566f",
    "lmdb": "#cc79a7", "rocksdb": "#e3b5cd",
}
INK, PALE = "#222222", "#dddddd"
# The marks of curves in the order of the systems, each with its own dashes.
DASHES = {"square": "", "ring": "2 3", "circle": "9 3", "triangle": "9 3 2 3"}


class Picture:
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">',
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
        self.text(16, 26, title, size=16, weight="bold")

    def text(self, x, y, words, size=12, anchor="start", weight="normal", colour=INK):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
                          f'font-weight="{weight}" fill="{colour}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, colour=PALE, width=1.0, dash=""):
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{colour}" stroke-width="{width}"{dash}/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" '
                          f'fill="{colour}"/>')

    def curve(self, points, colour, mark):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = f' stroke-dasharray="{DASHES[mark]}"' if DASHES[mark] else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for x, y in points:
            self.mark(x, y, colour, mark)

    def mark(self, x, y, colour, mark):
        shapes = {
            "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>',
            "square": f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>',
            "triangle": f'<path d="M{x:.1f} {y - 5:.1f} l5 9 h-10 z" fill="{colour}"/>',
            "ring": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#ffffff" stroke="{colour}" stroke-width="2"/>',
        }
        self.parts.append(shapes[mark])

    def end(self):
        return "\n".join(self.parts + ["</svg>", ""])


def all_of(engine, objects):
    yield f"time-{engine}.svg", bars(
        objects, "ratio_to_c", f"Time to plain C on SQLCipher {engine} (log scale, shorter is faster)",
        ["W1", "W2", "W2d", "W3", "W4", "W5-put", "W5-get", "W6-single", "W6-async64", "open-pool-passphrase"])
    yield f"instructions-{engine}.svg", bars(
        objects, "instructions_ratio_to_c", f"Instructions to plain C on SQLCipher {engine} (log scale)",
        ["W1", "W2", "W3", "W4", "W5-put", "W5-get"])
    yield f"growth-{engine}.svg", growth(objects, f"Growth on SQLCipher {engine}: cost by the number of rows in the store")
    yield f"latency-{engine}.svg", latency(
        objects, f"Latency on SQLCipher {engine}: 64 durable writers beside 4 readers (log scales)")


# Ratio bars

# What the name of a workload does not tell of its floor.
NOTES = {"W6-async64": "C: one commit each"}


def bars(objects, key, title, workloads):
    groups = []
    for workload in workloads:
        found = {entry["system"]: entry[key] for entry in objects if entry["workload"] == workload}
        rows = [(system, found[system]) for system in WORKLOADS
                if found.get(system) is not None and system != "c-sqlcipher"]
        if rows:
            groups.append((workload, rows))
    if not groups:
        return None
    values = [value for _, rows in groups for _, value in rows]
    low, high = min([0.5] + values) * 0.85, max([2] + values) * 1.1
    left, right, top, step = 330, 60, 62, 17
    width = 900
    height = top + sum(len(rows) * step + 18 for _, rows in groups) + 22
    picture = Picture(width, height, title)

    def place(value):
        return left + (math.log(value) - math.log(low)) / (math.log(high) - math.log(low)) * (width - left - right)

    for tick in ticks(low, high):
        picture.line(place(tick), top - 8, place(tick), height - 22, PALE)
        picture.text(place(tick), top - 12, number(tick), 11, "middle")
    y = top
    for workload, rows in groups:
        picture.text(16, y + 13, workload, 13, weight="bold")
        if workload in NOTES:
            picture.text(16, y + 27, NOTES[workload], 10)
        for system, value in rows:
            shown = system + (" (plain)" if system in UNENCRYPTED else "")
            picture.text(left - 10, y + 12, shown, 11, "end")
            start, end = sorted([place(1), place(value)])
            picture.bar(start, y + 2, end - start, step - 5, COLOURS[system])
            picture.text(place(max(value, 1)) + 5, y + 12, number(value), 11)
            y += step
        y += 18
    picture.line(place(1), top - 8, place(1), height - 22, INK, 1.5)
    picture.text(place(1), height - 8, "plain C = 1", 11, "middle")
    return picture.end()


def ticks(low, high):
    return [tick for power in range(-3, 4) for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power)
            if low <= tick <= high]


def number(value):
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}".rstrip("0").rstrip(".") if value >= 10 else f"{value:.2f}".rstrip("0").rstrip(".")


# Growth curves


def growth_value(entry):
    """What is drawn of a growth figure: the cost of one row, lookup, range or opening, and its unit."""
    if entry["workload"] in ("growth-get", "growth-index"):
        return entry["median_us"] / 10_000, "µs"
    if entry["workload"] == "growth-range":
        return entry["median_us"] / 1000, "µs"
    if entry["workload"] == "growth-open":
        return entry["median_us"] / 1000, "ms"
    return entry["median_us"] / entry["rows"], "µs"


def growth(objects, title):
    panels = [("growth-insert", "insert, µs a row"), ("growth-get", "lookup at random, µs"),
              ("growth-scan", "fetch all, µs a row"), ("growth-open", "open and first lookup, ms"),
              ("growth-index", "lookup by an index, µs"), ("growth-range", "100 rows in order, µs"),
              ("growth-group", "group by, µs a row"), ("growth-verify", "verify, µs a row")]
    found = [entry for entry in objects if entry["workload"].startswith("growth")]
    if not found:
        return None
    panels = [panel for panel in panels if any(entry["workload"] == panel[0] for entry in found)]
    picture = Picture(900, 90 + (len(panels) + 1) // 2 * 285, title)
    marks = legend(picture, found)
    for index, (workload, words) in enumerate(panels):
        entries = [entry for entry in found if entry["workload"] == workload]
        rows = sorted({entry["rows"] for entry in entries})
        panel(picture, 70 + index % 2 * 440, 90 + index // 2 * 285, words, marks,
              [(count, f"{count:,.0f} rows".replace(",", " ")) for count in rows],
              [(entry["system"], entry["rows"], growth_value(entry)[0]) for entry in entries])
    return picture.end()


# Latencies

# One in so many calls takes longer. The slowest of all has no such number: it stands at the end.
PERCENTILES = {"50": (2, "p50"), "90": (10, "p90"), "99": (100, "p99"), "99.9": (1000, "p99.9"), "100": (10_000, "max")}
# The figures, their words, and the µs of their unit.
LATENCIES = {"W6-latency": ("durable write, ms", 1000), "W6-latency-read": ("lookup meanwhile, µs", 1)}
# Of one writer; in the tables only.
BESIDE = {"W6-quiet": ("one durable write, alone, ms", 1000), "W6-beside": ("the same beside a long read, ms", 1000),
          "W6-beside-4mb": ("the same with 4 MB of WAL, ms", 1000),
          "sweep-quiet": ("one set of 1 000 a second, alone, µs", 1), "sweep-beside": ("the same beside a sweep, µs", 1),
          "serve-quiet": ("1 000 writes a second, alone, ms", 1000), "serve-quiet-read": ("lookup meanwhile, µs", 1),
          "serve-rotating": ("the same through ten rotations and a new root, ms", 1000),
          "serve-rotating-read": ("lookup meanwhile, µs", 1),
          "observers-0": ("one commit while nobody observes, µs", 1), "observers-1": ("the same with one observer, who gets a value, µs", 1),
          "observers-10": ("the same with nine others, µs", 1), "observers-100": ("the same with 99 others, µs", 1),
          "observers-1000": ("the same with 999 others, µs", 1)}


def latency(objects, title):
    found = [entry for entry in objects if entry["workload"] in LATENCIES]
    if not found:
        return None
    picture = Picture(900, 345, title)
    marks = legend(picture, found)
    for index, (workload, (words, unit)) in enumerate(LATENCIES.items()):
        panel(picture, 70 + index * 440, 90, words, marks, list(PERCENTILES.values()),
              [(entry["system"], PERCENTILES[name][0], value / unit) for entry in found if entry["workload"] == workload
               for name, value in entry["percentiles_us"].items() if name in PERCENTILES])
    return picture.end()


# Curves


def legend(picture, entries):
    """Shows the systems, and gives the mark of each."""
    systems = [name for name in WORKLOADS if any(entry["system"] == name for entry in entries)]
    marks = dict(zip(systems, DASHES))
    x = 21
    for system in systems:
        picture.curve([(x, 44), (x + 28, 44)], COLOURS[system], marks[system])
        picture.text(x + 40, 48, system + (" (plain)" if system in UNENCRYPTED else ""))
        x += 205
    return marks


def panel(picture, left, top, words, marks, columns, points):
    """`columns`: place and name of each; `points`: system, place among the columns, value."""
    width, height = 350, 210
    values = [value for _, _, value in points]
    if not values:
        return
    first, last = columns[0][0], columns[-1][0]
    low, high = min(values) / 1.5, max(values) * 1.5
    picture.text(left, top - 8, words, 13, weight="bold")

    def across(place):
        span = math.log(last / first) or 1
        return left + 15 + math.log(place / first) / span * (width - 30)

    def up(value):
        return top + height - math.log(value / low) / math.log(high / low) * height

    for tick in ticks(low, high):
        picture.line(left, up(tick), left + width, up(tick))
        picture.text(left - 6, up(tick) + 4, number(tick), 11, "end")
    for place, name in columns:
        picture.line(across(place), top, across(place), top + height)
        picture.text(across(place), top + height + 18, name, 11, "middle")
    picture.line(left, top + height, left + width, top + height, INK)
    picture.line(left, top, left, top + height, INK)
    for system, mark in marks.items():
        line = sorted((place, value) for name, place, value in points if name == system)
        if line:
            picture.curve([(across(place), up(value)) for place, value in line], COLOURS[system], mark)
