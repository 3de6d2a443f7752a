"""Trigger that waits in the triggerer until partitions are drained."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_kpipe.checkpointing.draining import summary
from airflow_provider_kpipe.checkpointing.looking import GateLooks
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.hooks.kpipe import KpipeHook


class PartitionsDrainedTrigger(BaseTrigger):
    """Trigger of a gate. It only reads: it may run twice, and in several triggerers."""

    def __init__(self, conn_id: str, target: dict[str, Any], poke_interval: float) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.target = target
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {"conn_id": self.conn_id, "target": self.target, "poke_interval": self.poke_interval},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            target = DrainTarget.from_json(self.target)
        except DocumentError as error:
            yield TriggerEvent({"error": str(error)})
            return
        with GateLooks() as looks:
            async for event in self._events(looks, target):
                yield event

    async def _events(self, looks: GateLooks, target: DrainTarget) -> AsyncIterator[TriggerEvent]:
        told = ""
        while True:
            try:
                settings = await KpipeHook(self.conn_id).aget_conn()
                drains = await looks.look(settings, target)
            except KpipeError as error:
                if not error.retriable:
                    yield TriggerEvent({"error": str(error)})
                    return
                if str(error) != told:
                    self.log.warning("Kafka cannot be asked now: %s", error)
                told = str(error)
            except DocumentError as error:
                yield TriggerEvent({"error": str(error)})
                return
            else:
                told = ""
                waiting = [each for each in drains if not each.drained]
                if not waiting:
                    yield TriggerEvent({"partitions": summary(drains)})
                    return
                self.log.info("%d of %d partitions are not drained", len(waiting), len(drains))
            await asyncio.sleep(self.poke_interval)
