#!/usr/bin/env python3
"""Writes buckets.json: composite keys of buckets, packed after Documentation/file-format.md.

Shares no code with Coffer. The output is the same each time, and is in the order of the keys.
"""
import json
import pathlib
import random
import struct
import uuid


def integer(value: int) -> bytes:
    return struct.pack(">q", value)[:1].translate(bytes(b ^ 0x80 for b in range(256))) + struct.pack(
        ">q", value
    )[1:]


def date(value: float) -> bytes:
    raw = struct.pack(">d", value + 0.0)
    if raw[0] & 0x80:
        return bytes(byte ^ 0xFF for byte in raw)
    return bytes([raw[0] | 0x80]) + raw[1:]


def variable(value: bytes, is_last: bool) -> bytes:
    return value if is_last else value.replace(b"\0", b"\0\xff") + b"\0\x01"


def packed(types: list, parts: list) -> bytes:
    result = b""
    for index, (kind, part) in enumerate(zip(types, parts)):
        is_last = index == len(parts) - 1
        result += {
            "integer": lambda: integer(part),
            "bool": lambda: bytes([int(part)]),
            "unsigned": lambda: struct.pack(">Q", part),
            "date": lambda: date(part),
            "uuid": lambda: uuid.UUID(part).bytes,
            "text": lambda: variable(part.encode(), is_last),
            "bytes": lambda: variable(bytes.fromhex(part), is_last),
        }[kind]()
    return result


def order(kind: str, part):
    return {"text": lambda: part.encode(), "bytes": lambda: bytes.fromhex(part)}.get(
        kind, lambda: part
    )()


VALUES = {
    "text": ["", "\0", "\0\x01", "a", "a\0", "a\0b", "a\x01", "ab", "é", "\U0010ffff"],
    "integer": [-(2**63), -256, -1, 0, 1, 255, 2**63 - 1],
    "date": [-1e300, -63114076800.0, -0.5, 0.0, 5e-324, 0.1, 8e8, 63113904000.0],
    "unsigned": [0, 1, 255, 256, 2**63, 2**64 - 1],
    "bool": [False, True],
    "uuid": [str(uuid.UUID(int=n)) for n in (0, 1, 2**64, 2**128 - 1)],
    "bytes": ["", "00", "0001", "00ff", "01", "ff", "ff00"],
}

SHAPES = [
    ["text", "integer"], ["text", "text"], ["uuid", "date"], ["date", "bool", "text"],
    ["bytes", "unsigned", "bytes"], ["text", "bytes", "integer", "text"],
]


def main() -> None:
    generator = random.Random(20)
    shapes = []
    for types in SHAPES:
        keys = {tuple(generator.choice(VALUES[kind]) for kind in types) for _ in range(60)}
        ordered = sorted(
            keys, key=lambda parts: [order(kind, part) for kind, part in zip(types, parts)]
        )
        entries = [
            {"parts": list(parts), "bytes": packed(types, list(parts)).hex()} for parts in ordered
        ]
        encoded = [entry["bytes"] for entry in entries]
        assert encoded == sorted(encoded), "the bytes are in the order of the parts"
        shapes.append({"types": types, "keys": entries})
    target = pathlib.Path(__file__).with_name("buckets.json")
    target.write_text(json.dumps(shapes, indent=1) + "\n")


if __name__ == "__main__":
    main()
