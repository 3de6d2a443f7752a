"""The looks of many gates in one process. Gates at one cluster share a thread and a client, apart from the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from airflow_provider_kpipe.checkpointing.draining import LOOK_SECONDS, PartitionDrain, look_at
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.kafka.positions import Positions


class Lookout:
    """The thread that looks at one cluster while a gate waits there. A dead cluster holds up only its own gates."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self.gates = 0
        self._positions: Positions | None = None
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="kpipe-gates")

    def look(self, target: DrainTarget) -> list[PartitionDrain]:
        if self._positions is None:
            self._positions = Positions(self.settings, answer_seconds=LOOK_SECONDS)
        try:
            return look_at(self._positions, target)
        finally:
            # A consumer belongs to one group only, and each gate may watch another one.
            self._positions.cluster.forget(target.group)

    def end(self) -> None:
        """Close the client after the look that is under way."""
        self.thread.submit(self._close)
        self.thread.shutdown(wait=False)

    def _close(self) -> None:
        if self._positions is not None:
            self._positions.cluster.close()


_lookouts: list[Lookout] = []
_lock = threading.Lock()


class GateLooks:
    """The looks of one gate. A context manager: the last gate at a cluster closes the shared thread and client."""

    def __init__(self) -> None:
        self._lookout: Lookout | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def look(self, settings: Mapping[str, str], target: DrainTarget) -> list[PartitionDrain]:
        lookout = self._at(settings)
        return await asyncio.get_running_loop().run_in_executor(lookout.thread, lookout.look, target)

    def _at(self, settings: Mapping[str, str]) -> Lookout:
        # A user may change the connection while the gate waits.
        if self._lookout is not None and self._lookout.settings == settings:
            return self._lookout
        self._leave()
        with _lock:
            lookout = next((each for each in _lookouts if each.settings == settings), None)
            if lookout is None:
                lookout = Lookout(settings)
                _lookouts.append(lookout)
            lookout.gates += 1
        self._lookout = lookout
        return lookout

    def _leave(self) -> None:
        lookout, self._lookout = self._lookout, None
        if lookout is None:
            return
        with _lock:
            lookout.gates -= 1
            if lookout.gates:
                return
            _lookouts.remove(lookout)
        lookout.end()
