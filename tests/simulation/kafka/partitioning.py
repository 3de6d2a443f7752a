"""Which partition a key goes to, as librdkafka says."""

from __future__ import annotations

import zlib
from functools import lru_cache
from random import Random

_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


@lru_cache(maxsize=10_000)
def murmur2(key: bytes) -> int:
    found = _SEED ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        found = found * _M & _MASK ^ word
    if len(key) > whole:
        found = (found ^ int.from_bytes(key[whole:], "little")) * _M & _MASK
    found = (found ^ found >> 13) * _M & _MASK
    return (found ^ found >> 15) & 0x7FFFFFFF


def choose_partition(partitioner: str, key: bytes | None, partitions: int, chance: Random) -> int:
    """The partition of a record that names none; only a random one needs chance."""
    if partitions == 1:
        return 0
    is_random = partitioner == "random" or (not key and partitioner.endswith("_random")) or key is None
    if is_random and partitioner not in ("consistent", "murmur2"):
        return int(chance.random() * partitions)
    if partitioner.startswith("murmur2"):
        return murmur2(key or b"") % partitions
    return zlib.crc32(key or b"") % partitions
