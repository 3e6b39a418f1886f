"""Import and export of the tool `coffer`: instructions against the shell `sqlcipher`, and memory with a long field."""

import os
import random
import shutil
import subprocess

from systems import ROOT, Skipped

ROWS = 30_000
FIELD_BYTES = 100_000_000
SCHEMA = "CREATE TABLE item(id INTEGER, name TEXT, price REAL, note TEXT, day TEXT)"
WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliett".split()


def shell(engine):
    """The shell of the same SQLCipher."""
    own = ROOT / ".build-sqlcipher4/usr/bin/sqlcipher"
    found = str(own) if engine.is_fourth() and own.exists() else shutil.which("sqlcipher")
    version = "SELECT 1;\nPRAGMA cipher_version;\n"
    text = found and engine.run([found], input=version, stdout=subprocess.PIPE, text=True).stdout
    if not text or engine.version not in text:
        raise Skipped(f"there is no shell of SQLCipher {engine.version}")
    return found


class Files:
    """A store without rows, one with them, and what to import."""

    def __init__(self, engine, tool, key):
        self.engine, self.tool, self.key = engine, tool, ["--raw-key-file", str(key)]
        folder = engine.stores
        self.empty, self.full, self.work = folder / "empty.db", folder / "full.db", folder / "work.db"
        self.header, self.rows = folder / "header.csv", folder / "rows.csv"
        for path in [self.empty, self.full, self.work]:
            path.unlink(missing_ok=True)
        write(self.header, 0)
        write(self.rows, ROWS)
        self.call("init", self.empty, "--quiet")
        self.call("sql", self.empty, SCHEMA, "--write", "--quiet")
        shutil.copy(self.empty, self.full)
        self.call("import", self.full, self.rows, "--table", "item", "--quiet")

    def command(self, *arguments):
        return [str(self.tool), *map(str, arguments), *self.key]

    def call(self, *arguments):
        self.engine.run(self.command(*arguments))

    def fresh(self):
        """A store without rows, to import into."""
        shutil.copy(self.empty, self.work)
        return self.work

    def pragmas(self):
        return self.engine.output(self.command("shell-key", self.empty, "--reveal"))


def write(path, count):
    """A table of five columns; in a twentieth of the rows a text is quoted."""
    numbers = random.Random(1)
    with open(path, "w") as file:
        file.write("id,name,price,note,day\n")
        for row in range(count):
            note = " ".join(numbers.choice(WORDS) for _ in range(4))
            if row % 20 == 0:
                note = '"' + note.replace(" ", ", ") + ' ""q"""'
            name, price = f"{numbers.choice(WORDS)}{row % 997}", numbers.randrange(100_000) / 100
            file.write(f"{row},{name},{price},{note},2026-{row % 12 + 1:02}-{row % 28 + 1:02}\n")


def ratios(engine, tool, key, counted):
    """Instructions of the tool to those of the shell, each without those of a run on no row."""
    program, files = shell(engine), Files(engine, tool, key)
    pragmas = files.pragmas()

    def tool_import(rows):
        return counted(engine, files.command("import", files.fresh(), rows, "--table", "item", "--quiet"))

    def shell_import(rows):
        # The header is a row to the shell: the table exists.
        return counted(engine, [program, str(files.fresh())], f"{pragmas}\n.mode csv\n.import {rows} item\n")

    def tool_export(store, form):
        return counted(engine, files.command("export", store, "--table", "item", "--format", form))

    def shell_export(store):
        return counted(engine, [program, str(store)], f"{pragmas}\n.headers on\n.mode csv\nSELECT * FROM item;\n")

    importing = shell_import(files.rows) - shell_import(files.header)
    exporting = shell_export(files.full) - shell_export(files.empty)
    found = {"import-csv": (tool_import(files.rows) - tool_import(files.header)) / importing}
    for form in ["csv", "jsonl"]:
        found[f"export-{form}"] = (tool_export(files.full, form) - tool_export(files.empty, form)) / exporting
    return {name: round(ratio, 2) for name, ratio in found.items()}


def memory(engine, tool, key):
    """The peak of the resident memory with a field of 100 MB, in multiples of the field."""
    files = Files(engine, tool, key)
    long = engine.stores / "long.csv"
    line = 'a row of text with a ""quote"", again and again\n'
    with open(long, "w") as file:
        file.write('note\n"' + line * (FIELD_BYTES // len(line)) + '"\n')
    store = files.fresh()
    found = {"import-csv": peak(engine, files.command("import", store, long, "--table", "item", "--quiet"))}
    for form in ["csv", "jsonl", "sql"]:
        found[f"export-{form}"] = peak(engine, files.command("export", store, "--table", "item", "--format", form))
    long.unlink()
    store.unlink()
    return {name: round(count / FIELD_BYTES, 2) for name, count in found.items()}


def peak(engine, command):
    process = subprocess.Popen(command, env=engine.environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), command[:2])
    return usage.ru_maxrss * 1024
