"""`python -m airflow_provider_kpipe.sandbox` runs a broker until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_kpipe.sandbox.broker import SandboxBroker
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.java import FAST_JVM, SMALL_JVM


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a broker, print its address, and keep it running."""
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_kpipe.sandbox",
        description="Start a single-node Kafka, print its address, and keep it up until Ctrl-C or SIGTERM.",
    )
    parser.add_argument("--folder", type=Path, help="keep settings, log and data here (default: a temporary folder)")
    parser.add_argument("--fast", action="store_true", help="give it 1 GB and Java's own defaults, for benchmarks")
    options = parser.parse_args(arguments)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        with SandboxBroker(options.folder, jvm=FAST_JVM if options.fast else SMALL_JVM) as broker:
            sys.stdout.write(f"{broker.bootstrap_servers}\n")
            sys.stdout.flush()
            broker.wait()
    except KeyboardInterrupt:
        return 0
    except SandboxError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
