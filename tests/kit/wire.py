"""Requests that the client library has no working call for: to reorder replicas, and to let the first of them lead."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence

ELECT_LEADERS, ALTER_PARTITION_REASSIGNMENTS = 43, 45
TIMEOUT_SECONDS = 10.0
TIMEOUT = struct.pack(">i", int(TIMEOUT_SECONDS * 1000))
NO_TAGS = b"\0"


def make_leaders(address: str, replicas: Mapping[tuple[str, int], Sequence[int]]) -> None:
    """Make the first of each list the leader; the brokers in the list stay the same, so nothing is copied."""
    ask(address, ALTER_PARTITION_REASSIGNMENTS, 0, reordering(replicas))
    ask(address, ELECT_LEADERS, 2, electing(list(replicas)))


def ask(address: str, kind: int, version: int, body: bytes) -> bytes:
    """Send a request with the header of flexible versions; the answer, from its number on."""
    client = b"tests"
    head = struct.pack(">hhih", kind, version, 1, len(client)) + client + NO_TAGS
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        stream = connection.makefile("rb")
        (length,) = struct.unpack(">i", stream.read(4))
        return stream.read(length)


def reordering(replicas: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    topics = [
        compact(topic.encode())
        + array([struct.pack(">i", partition) + array([struct.pack(">i", each) for each in brokers]) + NO_TAGS])
        + NO_TAGS
        for (topic, partition), brokers in replicas.items()
    ]
    return TIMEOUT + array(topics) + NO_TAGS


def electing(partitions: Sequence[tuple[str, int]]) -> bytes:
    preferred = b"\0"
    topics = [compact(topic.encode()) + array([struct.pack(">i", number)]) + NO_TAGS for topic, number in partitions]
    return preferred + array(topics) + TIMEOUT + NO_TAGS


def varint(number: int) -> bytes:
    """Write seven bits in each byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def compact(text: bytes) -> bytes:
    return varint(len(text) + 1) + text


def array(items: Sequence[bytes]) -> bytes:
    return varint(len(items) + 1) + b"".join(items)
