"""Looks for a secret in what a job shows or leaves, also where it is packed as it travels."""

from __future__ import annotations

import base64
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

_PACKED = re.compile(rb"H4sI[A-Za-z0-9_-]+")


def reveals(shown: str | bytes, secret: str) -> bool:
    text = shown.encode() if isinstance(shown, str) else shown
    return any(secret.encode() in each for each in (text, *map(_unpacked, _PACKED.findall(text))))


def files_that_reveal(folder: Path, secret: str) -> list[str]:
    """Of all that is in there; archives are looked into."""
    return [name for name, content in _contents(folder) if reveals(content, secret)]


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in (each for each in folder.rglob("*") if each.is_file()):
        yield str(file), file.read_bytes()
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                yield from ((f"{file}/{name}", archive.read(name)) for name in archive.namelist())


def _unpacked(word: bytes) -> bytes:
    """As much as there is of it: what shows may be cut short."""
    try:
        return zlib.decompressobj(wbits=31).decompress(base64.urlsafe_b64decode(word[: len(word) // 4 * 4]))
    except zlib.error:
        return b""
