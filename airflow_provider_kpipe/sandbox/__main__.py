"""`python -m airflow_provider_kpipe.sandbox` runs a broker until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from airflow_provider_kpipe.sandbox.broker import SandboxBroker
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.java import FAST_JVM, SMALL_JVM
from airflow_provider_kpipe.sandbox.topics import create_topics


class Topic(NamedTuple):
    """A topic to create."""

    name: str
    partitions: int

    @classmethod
    def from_text(cls, text: str) -> Topic:
        """Read `orders` or `orders:4`; the name of a topic holds no colon."""
        name, colon, partitions = text.partition(":")
        if not name or (colon and not (partitions.isdigit() and int(partitions))):
            raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS, such as orders:4")
        return cls(name, int(partitions or 1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a broker, create its topics, print its address, and keep it running."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        with SandboxBroker(options.folder, port=options.port, jvm=FAST_JVM if options.fast else SMALL_JVM) as broker:
            for topic in options.topic:
                _create(broker.bootstrap_servers, topic)
            sys.stdout.write(f"{broker.bootstrap_servers}\n")
            sys.stdout.flush()
            broker.wait()
    except KeyboardInterrupt:
        return 0
    except SandboxError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _create(bootstrap_servers: str, topic: Topic) -> None:
    from confluent_kafka import KafkaError, KafkaException

    try:
        create_topics(bootstrap_servers, topic.name, partitions=topic.partitions)
    except KafkaException as failure:
        error = failure.args[0]
        # A folder that is kept has the topics of its last broker.
        if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise SandboxError(f"topic {topic.name!r} cannot be created: {error.str()}") from failure


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_kpipe.sandbox",
        description="Start a single-node Kafka, print its address, and keep it up until Ctrl-C or SIGTERM.",
        epilog="`python -m airflow_provider_kpipe.sandbox.tools kafka-topics --help` runs Kafka's own tools.",
    )
    parser.add_argument("--port", type=int, help="listen here (default: a free port)")
    parser.add_argument(
        "--topic",
        type=Topic.from_text,
        action="append",
        default=[],
        metavar="NAME[:PARTITIONS]",
        help="create this topic, unless it is there already; may be given several times",
    )
    parser.add_argument("--folder", type=Path, help="keep settings, log and data here (default: a temporary folder)")
    parser.add_argument("--fast", action="store_true", help="give it 1 GB and Java's own defaults, for benchmarks")
    return parser


if __name__ == "__main__":
    sys.exit(main())
