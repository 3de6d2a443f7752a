"""The process in which partition workers run: forked by a supervisor, which outlives it and starts another one."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import IO, Any

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.memory_limit import limit_memory
from kpipe_engine.stop_signal import KafkaStopSignal, StopSignal
from kpipe_engine.supervision.silence import silent_clusters
from kpipe_engine.wiring import build_worker

PR_SET_PDEATHSIG = 1
CLOSED = b"closed"
TELL_WHERE = signal.SIGUSR1
"""Signal that makes a worker write down where its threads are, whatever it is at."""
# When a host or a container runs out of memory, the kernel ends this process first, and not Spark's JVM.
FIRST_TO_GO = "500"

_libc = ctypes.CDLL(None)


def serve(
    job: Job, kafka: KafkaSettings, supervisor: int, pipe: Connection, position: WorkerPosition, trace: IO[bytes]
) -> None:
    """Run the blocks that come through the pipe until it ends, and answer each None with the silent clusters.

    No error leaves this function: the process ends instead.
    """
    try:
        _prepare(job, supervisor, trace)
        while True:
            given = pipe.recv()
            if given is None:
                pipe.send_bytes(_answer([], silent_clusters(kafka)))
                continue
            position.begin()
            block, number, precautions = given
            _run(job, kafka, block, number, precautions, position, pipe.send_bytes)
            pipe.send_bytes(CLOSED)
    except EOFError:
        _leave(0)
    except BaseException:  # noqa: BLE001  # whatever gets past a worker, its supervisor has to know
        try:
            trace.write(traceback.format_exc().encode())
            trace.flush()
        finally:
            # Even if there is no memory left to write the reason.
            _leave(1)


def _run(
    job: Job,
    kafka: KafkaSettings,
    block: Sequence[PartitionRange],
    number: int,
    precautions: Precautions,
    position: WorkerPosition,
    tell: Callable[[bytes], None],
) -> None:
    def work(stop_signal: StopSignal) -> None:
        worker = build_worker(job, kafka, block, stop_signal, number, precautions=precautions, position=position)
        try:
            done = [progress.to_json() for progress in worker.work()]
            silent = silent_clusters(kafka) if worker.met_silence else []
            # Sent before anything is closed: the result is final, however segments close.
            tell(_answer(done, silent))
        finally:
            worker.close()

    if precautions.yields is not None:
        stop_signal = StopSignal()
        stop_signal.request(precautions.yields)
        work(stop_signal)
        return
    with KafkaStopSignal(job, kafka.source) as listening:
        work(listening)


def _answer(done: list[dict[str, Any]], silent: list[str]) -> bytes:
    return json.dumps({"done": done, "silent": silent}).encode()


def _prepare(job: Job, supervisor: int, trace: IO[bytes]) -> None:
    if sys.platform == "linux":
        # Spark ends its workers with SIGKILL, which would leave this process behind.
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:  # it ended before the signal was armed, so no signal will come
            _leave(1)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write(FIRST_TO_GO)
    faulthandler.enable(trace, all_threads=False)
    faulthandler.register(TELL_WHERE, trace)
    limit_memory(job.pipeline.worker_memory_mb)
    # Messages hold no cycles: a search for cycles every 700 messages took 8 % of a copy.
    gc.set_threshold(50_000, 20, 100)


def _leave(code: int) -> None:
    """End the process without the exit work that a forked Python would do for its parent."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
