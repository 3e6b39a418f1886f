#!/usr/bin/env python3
"""Writes owners.db and owners.json: a store, and what SQLite itself says each page of it holds.

Python's sqlite3 writes a plain database that leaves room for SQLCipher's reserve, and tells by its
`dbstat` table (https://www.sqlite.org/dbstat.html) which table or index has which page; the pages
that it does not name are on the free list. The pages are then encrypted as by pages.py, which
importing runs as well. Another version of SQLite may lay the pages out in another way; both files
are written together.
"""
import json
import pathlib
import sqlite3
import tempfile

import pages

PROFILE = "sqlcipher3"
_, PAGE_SIZE, RESERVE = pages.PROFILES[PROFILE]
ROLES = {"leaf": "a leaf", "internal": "an interior page", "overflow": "overflow"}


def fill(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body BLOB)")
    db.execute("CREATE INDEX note_title ON note(title)")
    db.execute("CREATE TABLE tag(name TEXT PRIMARY KEY, weight) WITHOUT ROWID")
    db.execute("CREATE TABLE person(id INTEGER PRIMARY KEY AUTOINCREMENT, mail TEXT UNIQUE)")
    db.execute("CREATE TABLE dropped(v)")
    # Names that do not stand on the page of the schema's row, and a schema of several pages.
    long_name = "long " + "name " * 40
    for number in range(3):
        comment = "comment " * 150
        db.execute(f'CREATE TABLE "{long_name}{number}"(v /* {comment} */)')
        db.execute(f'INSERT INTO "{long_name}{number}" VALUES (zeroblob(1500))')
    db.execute("CREATE VIEW titles AS SELECT title FROM note")
    for number in range(40):
        title = f"{number * 7 % 40:03} " + "title " * (number % 5 * 10)
        db.execute("INSERT INTO note VALUES (?, ?, zeroblob(?))", (number - 9, title, number * 25))
        db.execute("INSERT INTO tag VALUES (?, ?)", (f"{number:03} " + "tag " * 48, number))
        db.execute("INSERT INTO person(mail) VALUES (?)", (f"person {number} of the list",))
        db.execute("INSERT INTO dropped VALUES (zeroblob(300))")
    db.execute("INSERT INTO note VALUES (1000, 'long', zeroblob(6000))")
    # Entries that overflow from interior pages of an index, too.
    db.execute("UPDATE tag SET name = name || ? WHERE weight % 4 = 3", ("tag " * 50,))
    db.execute("DROP TABLE dropped")


def owners(db: sqlite3.Connection) -> list[dict]:
    (count,) = db.execute("PRAGMA page_count").fetchone()
    found = [{"content": "free", "isRoot": False} for _ in range(count)]
    schema = db.execute("SELECT type, name, tbl_name, rootpage FROM sqlite_master").fetchall()
    rows = {name: (kind, table, root) for kind, name, table, root in schema}
    for name, number, role in db.execute("SELECT name, pageno, pagetype FROM dbstat"):
        if name in ("sqlite_master", "sqlite_schema"):
            found[number - 1] = {"content": "the schema", "isRoot": False}
            continue
        kind, table, root = rows[name]
        owner = f"table {name}" if kind == "table" else f"index {name} of table {table}"
        found[number - 1] = {"content": f"{ROLES[role]} of {owner}", "isRoot": number == root}
    free = sum(page["content"] == "free" for page in found)
    assert db.execute("PRAGMA freelist_count").fetchone() == (free,)
    return found


key, salt = pages.noise("key of owners", 32), pages.noise("salt of owners", 16)
here = pathlib.Path(__file__)
with tempfile.TemporaryDirectory() as folder:
    plain = pathlib.Path(folder) / "plain.db"
    start = [pages.first_page(PAGE_SIZE, RESERVE, valid_for=7), pages.free_page(PAGE_SIZE - RESERVE)]
    plain.write_bytes(b"".join(page + bytes(RESERVE) for page in start))
    with sqlite3.connect(plain) as db:
        fill(db)
    found = owners(db)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    content = plain.read_bytes()

encrypted = b"".join(
    pages.encrypt(PROFILE, number + 1, content[start:start + PAGE_SIZE - RESERVE], key, salt)
    for number, start in enumerate(range(0, len(content), PAGE_SIZE))
)
here.with_suffix(".db").write_bytes(encrypted)
document = {"profile": PROFILE, "key": key.hex(), "salt": salt.hex(), "pages": found}
here.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
