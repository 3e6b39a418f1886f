#!/usr/bin/env python3
"""Writes keyring.json: a keyring with a slot of each kind, and what is derived from its root.

Independent of Coffer: Python's hashlib and hmac, and the package `cryptography` from PyPI. The bytes
are laid out by Documentation/file-format.md. Run it anywhere; the output is the same each time.

`keyring.py FILE` reads a keyring instead, and checks it with the credentials of the vectors.
"""
import hashlib
import hmac
import json
import pathlib
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

AREA, FIRST_SLOT, SLOT, PLACES = 16384, 512, 1024, 15
MAGIC = bytes.fromhex("934346520d0a1a0a")
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
PASSPHRASE, KEY_FILE, RECOVERY, EXTERNAL, RECIPIENT = 1, 2, 3, 4, 5


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.new(salt, secret, hashlib.sha256).digest()


def expand(key: bytes, info: bytes, count: int = 32) -> bytes:
    result, block, number = b"", b"", 1
    while len(result) < count:
        block = hmac.new(key, block + info + bytes([number]), hashlib.sha256).digest()
        result, number = result + block, number + 1
    return result[:count]


# RFC 9180, base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305.

KEM = b"KEM" + (0x20).to_bytes(2, "big")
HPKE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x20, 1, 3))


def labeled_extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return extract(salt, b"HPKE-v1" + suite + label + secret)


def labeled_expand(suite: bytes, key: bytes, label: bytes, info: bytes, count: int) -> bytes:
    return expand(key, count.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, count)


def public(key: X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def hpke(shared: bytes, encapsulated: bytes, recipient: bytes, info: bytes) -> tuple[ChaCha20Poly1305, bytes]:
    """The cipher and the nonce of the first message."""
    key = labeled_extract(KEM, b"", b"eae_prk", shared)
    secret = labeled_expand(KEM, key, b"shared_secret", encapsulated + recipient, 32)
    context = (
        b"\0"
        + labeled_extract(HPKE, b"", b"psk_id_hash", b"")
        + labeled_extract(HPKE, b"", b"info_hash", info)
    )
    key = labeled_extract(HPKE, secret, b"secret", b"")
    return (
        ChaCha20Poly1305(labeled_expand(HPKE, key, b"key", context, 32)),
        labeled_expand(HPKE, key, b"base_nonce", context, 12),
    )


# The keyring.


def data_key(root: bytes, salt: bytes, epoch: int) -> bytes:
    return expand(root, b"coffer1 data" + salt + struct.pack(">I", epoch))


def letters(label: bytes, secret: bytes) -> str:
    number = int.from_bytes(secret + hashlib.sha256(label + secret).digest()[:3], "big")
    text = "".join(ALPHABET[number >> 5 * (55 - index) & 31] for index in range(56))
    return "-".join(text[index : index + 4] for index in range(0, 56, 4))


def bound(header: bytes, slot: bytes) -> bytes:
    return b"coffer1 slot" + header[:10] + header[24:40] + slot[:72]


def secret_of(kind: int, credential: bytes, slot: bytes) -> bytes:
    if kind != PASSPHRASE:
        return credential
    hashed = hashlib.sha256(b"coffer1 pass" + credential).digest()
    return hashlib.scrypt(
        hashed, salt=slot[8:40], n=1 << slot[5], r=slot[6], p=slot[7], dklen=32, maxmem=1 << 30
    )


def wrap_keys(kind: int, credential: bytes, slot: bytes) -> tuple[bytes, bytes]:
    key = extract(slot[40:72], secret_of(kind, credential, slot))
    return expand(key, b"coffer1 wrap" + bytes([kind])), expand(key, b"coffer1 commit" + bytes([kind]))


def slot(header: bytes, root: bytes, kind: int, number: int, credential: bytes, label: str, blob: bytes = b"",
         cost: tuple[int, int] = (14, 1)) -> bytes:
    made = bytearray(SLOT)
    made[0] = kind
    made[2:4] = struct.pack(">H", number)
    if kind == PASSPHRASE:
        made[4:8] = bytes([1, cost[0], 8, cost[1]])
        made[8:40] = b"\x11" * 32
    if kind != RECIPIENT:
        made[40:72] = bytes([0x20 + number]) * 32
    made[184:192] = struct.pack(">q", 1_700_000_000 + number)
    made[192:200] = struct.pack(">q", 1_700_000_100 + number)
    text = label.encode()
    made[200:202] = struct.pack(">H", len(text))
    made[202 : 202 + len(text)] = text
    made[320:322] = struct.pack(">H", len(blob))
    made[322 : 322 + len(blob)] = blob
    if kind == RECIPIENT:
        ephemeral = X25519PrivateKey.from_private_bytes(b"\x99" * 32)
        shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(blob))
        cipher, nonce = hpke(shared, public(ephemeral), blob, b"coffer1 recipient" + header[24:40])
        made[104:184] = public(ephemeral) + cipher.encrypt(nonce, root, bound(header, made))
    else:
        key, commitment = wrap_keys(kind, credential, made)
        made[72:104] = commitment
        nonce = bytes([0x30 + number]) * 12
        made[104:164] = nonce + ChaCha20Poly1305(key).encrypt(nonce, root, bound(header, made))
    return bytes(made)


def sealed(area: bytes, root: bytes) -> bytes:
    made = bytearray(area)
    made[16320:16352] = hmac.new(expand(root, b"coffer1 mac"), bytes(made[:16320]), hashlib.sha256).digest()
    made[16352:] = hashlib.sha256(bytes(made[:16352])).digest()
    return bytes(made)


def unlocked(area: bytes, kind: int, credential: bytes) -> bytes:
    """The root; AssertionError for anything that is not as it must be."""
    assert hashlib.sha256(area[:16352]).digest() == area[16352:], "digest"
    for index in range(PLACES):
        found = area[FIRST_SLOT + SLOT * index :][:SLOT]
        if found[0] != kind:
            continue
        if kind == RECIPIENT:
            identity = X25519PrivateKey.from_private_bytes(credential)
            if found[322:354] != public(identity):
                continue
            shared = identity.exchange(X25519PublicKey.from_public_bytes(found[104:136]))
            cipher, nonce = hpke(shared, found[104:136], public(identity), b"coffer1 recipient" + area[24:40])
            root = cipher.decrypt(nonce, found[136:184], bound(area, found))
        else:
            key, commitment = wrap_keys(kind, credential, found)
            if commitment != found[72:104]:
                continue
            root = ChaCha20Poly1305(key).decrypt(found[104:116], found[116:164], bound(area, found))
        code = hmac.new(expand(root, b"coffer1 mac"), area[:16320], hashlib.sha256).digest()
        assert code == area[16320:16352], "MAC"
        return root
    raise AssertionError("no slot")


IDENTITY = X25519PrivateKey.from_private_bytes(b"\x88" * 32)
CREDENTIALS = {
    PASSPHRASE: "correct horse battery, grüße".encode(),
    KEY_FILE: b"\x55" * 32,
    RECOVERY: b"\x66" * 32,
    EXTERNAL: b"\x77" * 32,
    RECIPIENT: b"\x88" * 32,
}


def vectors() -> dict:
    root, salt, epoch = bytes(range(32)), bytes(range(0x40, 0x50)), 7
    area = bytearray(AREA)
    area[0:8] = MAGIC
    area[8:16] = struct.pack(">HHI", 1, 0, AREA)
    area[16:24] = struct.pack(">Q", 42)
    area[24:40] = salt
    area[40:43] = bytes([1, 2, 0])
    area[44:54] = struct.pack(">IIH", 4096, epoch, 6)
    area[56:72] = struct.pack(">qq", 1_700_000_000, 1_700_000_500)
    area[72:76] = struct.pack(">I", 9)
    area[140:152] = struct.pack(">Iq", 3, 1_700_000_900)
    area[152:168] = expand(root, b"coffer1 root id" + salt, 16)
    key_id = expand(data_key(root, salt, epoch), b"coffer1 key id" + salt, 8)
    area[168:176] = key_id
    slots = [
        slot(area, root, PASSPHRASE, 1, CREDENTIALS[PASSPHRASE], "ops"),
        slot(area, root, KEY_FILE, 2, CREDENTIALS[KEY_FILE], "cron"),
        slot(area, root, RECOVERY, 3, CREDENTIALS[RECOVERY], "safe"),
        slot(area, root, EXTERNAL, 4, CREDENTIALS[EXTERNAL], "kms", blob=bytes(range(40))),
        slot(area, root, RECIPIENT, 5, b"", "Abrechnung, Büro 🗝", blob=public(IDENTITY)),
    ]
    for index, made in enumerate(slots):
        area[FIRST_SLOT + SLOT * index : FIRST_SLOT + SLOT * (index + 1)] = made
    area = sealed(area, root)
    for kind, credential in CREDENTIALS.items():
        assert unlocked(area, kind, credential) == root
    return {
        "root": root.hex(),
        "id": salt.hex(),
        "epoch": epoch,
        "dataKeys": {str(number): data_key(root, salt, number).hex() for number in (1, 7, 60_000, 2**32 - 1)},
        "keyID": key_id.hex(),
        "rootID": area[152:168].hex(),
        "recoveryKey": letters(b"coffer1 recovery", CREDENTIALS[RECOVERY]),
        "rootBackup": "ROOT-" + letters(b"coffer1 root", root),
        "credentials": {str(kind): credential.hex() for kind, credential in CREDENTIALS.items()},
        "derived": secret_of(PASSPHRASE, CREDENTIALS[PASSPHRASE], slots[0]).hex(),
        "header": area[:176].hex(),
        "slots": [made.rstrip(b"\0").hex() for made in slots],
        "mac": area[16320:16352].hex(),
        "digest": area[16352:].hex(),
    }


if len(sys.argv) > 1:
    for area in (pathlib.Path(sys.argv[1]).read_bytes()[start : start + AREA] for start in (0, AREA)):
        kinds = {area[FIRST_SLOT + SLOT * index] for index in range(PLACES)} - {0}
        roots = {unlocked(area, kind, CREDENTIALS[kind]).hex() for kind in sorted(kinds)}
        print(*sorted(kinds), *roots)
else:
    target = pathlib.Path(__file__).with_suffix(".json")
    target.write_text(json.dumps(vectors(), indent=1) + "\n")
