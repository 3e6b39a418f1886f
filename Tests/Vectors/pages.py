#!/usr/bin/env python3
"""Writes pages.json: two-page stores of each cipher profile, encrypted without SQLCipher.

Independent of Coffer: built after https://www.zetetic.net/sqlcipher/design/ and
https://www.sqlite.org/fileformat2.html with Python's hashlib, hmac and the `cryptography`
package. The output is the same each time. Joined, the pages of a profile are a whole file that
SQLCipher opens: an empty schema, and one page on the free list.
"""
import hashlib
import hmac
import json
import pathlib
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# Hash, page size, bytes reserved at the end of each page.
PROFILES = {
    "sqlcipher4": ("sha512", 4096, 80),
    "portable": ("sha1", 4096, 48),
    "sqlcipher3": ("sha1", 1024, 48),
}
# Formats that are only upgraded. SQLCipher 1 has no MAC; early 2.0 has the page number big-endian.
OLDER = {
    "sqlcipher1": (None, 1024, 16),
    "sqlcipher2": ("sha1", 1024, 48),
    "sqlcipher2BigEndian": ("sha1", 1024, 48),
}


def noise(label: str, count: int) -> bytes:
    return hashlib.shake_128(label.encode()).digest(count)


def header(page_size: int, reserve: int, valid_for: int) -> bytes:
    """The first 100 bytes of a database of two pages; its change counter is 7."""
    fields = struct.pack(">16sHBBBBBB", b"SQLite format 3\0", page_size, 1, 1, reserve, 64, 32, 32)
    # Change counter, pages, first free page, free pages, schema cookie, schema format.
    fields += struct.pack(">6I", 7, 2, 2, 1, 0, 4)
    # Cache size, largest root page, encoding UTF-8, user version, vacuum mode, application.
    fields += struct.pack(">6I", 0, 0, 1, 0, 0, 0)
    return fields + bytes(20) + struct.pack(">II", valid_for, 3_015_002)


def first_page(page_size: int, reserve: int, valid_for: int) -> bytes:
    usable = page_size - reserve
    # An empty leaf of the schema table: no free block, no cell, cells end where the page does.
    leaf = struct.pack(">BHHHB", 13, 0, 0, usable, 0)
    start = header(page_size, reserve, valid_for) + leaf
    return start + bytes(usable - len(start))


def free_page(usable: int) -> bytes:
    """The last trunk of the free list, without leaves; the rest is never read."""
    return struct.pack(">II", 0, 0) + noise("free page", usable - 8)


def encrypt(profile: str, number: int, plaintext: bytes, key: bytes, salt: bytes) -> bytes:
    digest, page_size, reserve = (PROFILES | OLDER)[profile]
    start = 16 if number == 1 else 0
    iv = noise(f"iv of {profile}, {number}", 16)
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    covered = cipher.update(plaintext[start:]) + cipher.finalize() + iv
    if digest is None:
        return (salt if number == 1 else b"") + covered
    mac_salt = bytes(byte ^ 0x3A for byte in salt)
    order = ">I" if profile.endswith("BigEndian") else "<I"
    mac_key = hashlib.pbkdf2_hmac(digest, key, mac_salt, 2, 32)
    mac = hmac.new(mac_key, covered + struct.pack(order, number), digest).digest()
    page = (salt if number == 1 else b"") + covered + mac
    return page + noise(f"padding of {profile}, {number}", page_size - len(page))


def vector(profile: str) -> dict:
    _, page_size, reserve = (PROFILES | OLDER)[profile]
    key = noise(f"key of {profile}", 32)
    salt = noise(f"salt of {profile}", 16)
    plain = [first_page(page_size, reserve, valid_for=7), free_page(page_size - reserve)]
    return {
        "profile": profile,
        "key": key.hex(),
        "salt": salt.hex(),
        "pages": [encrypt(profile, n, p, key, salt).hex() for n, p in enumerate(plain, start=1)],
    }


def stale_vector() -> dict:
    """As vector("sqlcipher3"), but a writer older than SQLite 3.7 changed the file last."""
    result = vector("sqlcipher3")
    _, page_size, reserve = PROFILES["sqlcipher3"]
    key, salt = bytes.fromhex(result["key"]), bytes.fromhex(result["salt"])
    page = first_page(page_size, reserve, valid_for=6)
    return result | {"pages": [encrypt("sqlcipher3", 1, page, key, salt).hex()]}


target = pathlib.Path(__file__).with_suffix(".json")
document = {
    "stores": [vector(profile) for profile in PROFILES],
    "stale": stale_vector(),
    "older": [vector(profile) for profile in OLDER],
}
target.write_text(json.dumps(document, indent=1) + "\n")
