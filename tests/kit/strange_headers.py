"""Records whose header names are no UTF-8: other clients can write them, and ours only by its library's own means."""

from __future__ import annotations

import ctypes
from pathlib import Path

import confluent_kafka

# From rdkafka.h.
PRODUCER, TOPIC, VALUE, FLAGS, HEADER, COPY = 0, 1, 4, 7, 9, 2


class _Memory(ctypes.Structure):
    _fields_ = (("pointer", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_char_p), ("size", ctypes.c_ssize_t))


class _Part(ctypes.Union):
    _fields_ = (
        ("text", ctypes.c_char_p),
        ("number", ctypes.c_int32),
        ("memory", _Memory),
        ("header", _Header),
        ("room", ctypes.c_char * 64),
    )


class _Argument(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("part", _Part))


def write_header_name(bootstrap: str, topic: str, value: bytes, name: bytes) -> None:
    """One record with one header."""
    (file,) = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs").glob("librdkafka*")
    library, why = ctypes.CDLL(str(file)), ctypes.create_string_buffer(512)
    for function in (library.rd_kafka_conf_new, library.rd_kafka_new, library.rd_kafka_produceva):
        function.restype = ctypes.c_void_p
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), why, 512)
    producer = ctypes.c_void_p(library.rd_kafka_new(PRODUCER, conf, why, 512))
    held = ctypes.create_string_buffer(value)
    arguments = (_Argument * 4)(
        _Argument(TOPIC, _Part(text=topic.encode())),
        _Argument(VALUE, _Part(memory=_Memory(ctypes.cast(held, ctypes.c_void_p), len(value)))),
        _Argument(FLAGS, _Part(number=COPY)),
        _Argument(HEADER, _Part(header=_Header(name, b"x", 1))),
    )
    assert library.rd_kafka_produceva(producer, arguments, 4) is None
    assert library.rd_kafka_flush(producer, 10_000) == 0
    library.rd_kafka_destroy(producer)
