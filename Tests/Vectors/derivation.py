#!/usr/bin/env python3
"""Writes derivation.json: what PBKDF2 of each cipher profile makes of some passphrases.

Independent of Coffer: Python's hashlib. Run it anywhere; the output is the same each time.
"""
import hashlib
import json
import pathlib

PROFILES = {
    "sqlcipher4": ("sha512", 256_000),
    "portable": ("sha1", 256_000),
    "sqlcipher3": ("sha1", 64_000),
}
PASSPHRASES = {
    "text": b"correct horse battery staple",
    "UTF-8": "Grüße, 世界 🗝".encode(),
    "a NUL inside": b"before\0after",
    "invalid UTF-8": bytes([0xFF, 0xFE, 0x80]),
    "longer than a block of SHA-512": bytes(range(1, 201)),
    "looks like a raw key": b"x'" + b"2d" * 32 + b"'",
}


def vector(profile: str, name: str, passphrase: bytes) -> dict[str, str]:
    digest, rounds = PROFILES[profile]
    salt = hashlib.shake_128(f"salt of {profile}, {name}".encode()).digest(16)
    key = hashlib.pbkdf2_hmac(digest, passphrase, salt, rounds, 32)
    return {
        "profile": profile,
        "name": name,
        "passphrase": passphrase.hex(),
        "salt": salt.hex(),
        "key": key.hex(),
    }


vectors = [vector(p, n, text) for p in PROFILES for n, text in PASSPHRASES.items()]
target = pathlib.Path(__file__).with_suffix(".json")
target.write_text(json.dumps(vectors, indent=1) + "\n")
