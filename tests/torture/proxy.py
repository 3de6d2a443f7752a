"""A proxy between clients and one broker, which knows where a request begins, and makes trouble by kind of request.

It runs in a thread of its own, and knows nothing of what it forwards but the kind and the number of each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal

PRODUCE, FETCH, OFFSET_COMMIT, OFFSET_FETCH, INIT_PRODUCER_ID = 0, 1, 8, 9, 22
ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28

Effect = Literal["delay", "cut_request", "cut_reply", "late_request", "hole"]
"""How it goes wrong.

- `delay`: a request waits, and all that follow it over the same connection
- `cut_request`: the connection is cut in front of a request, which the broker never sees
- `cut_reply`: the connection is cut in front of a reply: the broker has done it, and the client is not told
- `late_request`: the connection is cut, and the request comes to the broker later, as from a switch that held it
- `hole`: nothing comes through in any direction, and all connections stay open; then they are cut
"""

HEAD = struct.Struct(">ihhi")
"""Of a request: its length, its kind, the version of the kind, its number."""
REPLY = struct.Struct(">ii")
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Trouble:
    """A wrong that a proxy does as long as it is told to; without kinds, to any request."""

    effect: Effect
    kinds: frozenset[int] = frozenset()
    seconds: float = 0.0

    def concerns(self, kind: int | None) -> bool:
        return kind is not None and (not self.kinds or kind in self.kinds)


class Connection:
    """A client's connection, the broker's end of it, and the replies that are awaited."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._reader, self._writer = proxy, reader, writer
        self._kinds: dict[int, int] = {}

    async def run(self) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._proxy.upstream, limit=2**20)
        except OSError:
            self._writer.close()
            return
        self._upstream = writer
        self._closes_upstream = True
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._replies(reader))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writer.close()
            if self._closes_upstream:
                writer.close()

    async def _requests(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await self._reader.readexactly(HEAD.size)
                length, kind, _, number = HEAD.unpack(head)
                request = head + await self._reader.readexactly(length - (HEAD.size - 4))
                self._proxy.seen[kind] += 1
                if not await self._passes(kind, request):
                    return
                self._kinds[number] = kind
                self._upstream.write(request)
                await self._upstream.drain()

    async def _passes(self, kind: int, request: bytes) -> bool:
        """Hold a request back as long as it has to be; False for one with which the connection ends."""
        trouble = self._proxy.trouble
        if trouble is None:
            return True
        if trouble.effect == "hole":
            return await self._in_hole(trouble)
        if not trouble.concerns(kind):
            return True
        match trouble.effect:
            case "delay":
                self._proxy.hit()
                await asyncio.sleep(trouble.seconds)
            case "cut_request":
                self._proxy.hit()
                return False
            case "late_request":
                self._proxy.hit()
                # The broker sees no end of the connection before it.
                self._closes_upstream = False
                self._proxy.later(trouble.seconds, self._upstream, request)
                return False
        return True

    async def _replies(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(REPLY.size)
                length, number = REPLY.unpack(head)
                reply = head + await reader.readexactly(length - 4)
                kind, trouble = self._kinds.pop(number, None), self._proxy.trouble
                if trouble is not None and trouble.effect == "cut_reply" and trouble.concerns(kind):
                    self._proxy.hit()
                    return
                if trouble is not None and trouble.effect == "hole" and not await self._in_hole(trouble):
                    return
                self._writer.write(reply)
                await self._writer.drain()

    async def _in_hole(self, trouble: Trouble) -> bool:
        self._proxy.hit()
        while self._proxy.trouble is trouble:
            await asyncio.sleep(LOOK_SECONDS)
        return False


class Proxy:
    """A listener on one port for a broker on another. `trouble` is set from any thread."""

    def __init__(self, port: int, upstream: int) -> None:
        self.port, self.upstream = port, upstream
        self.trouble: Trouble | None = None
        self.seen: Counter[int] = Counter()
        self.hits = 0
        """Requests and replies that any trouble has been made of."""
        self._tasks: set[asyncio.Task[None]] = set()

    def hit(self) -> None:
        self.hits += 1

    async def serve(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=2**20, backlog=256)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The end of the thread is no failure to be told.
        with contextlib.suppress(asyncio.CancelledError):
            await Connection(self, reader, writer).run()

    def later(self, seconds: float, upstream: asyncio.StreamWriter, request: bytes) -> None:
        """Send a request that its client has given up, and then end the connection."""

        async def send() -> None:
            try:
                await asyncio.sleep(seconds)
                upstream.write(request)
                with contextlib.suppress(OSError):
                    await upstream.drain()
                await asyncio.sleep(LOOK_SECONDS)
            finally:
                upstream.close()

        task = asyncio.get_running_loop().create_task(send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class ProxyThread:
    """A context manager: proxies that serve inside the block."""

    def __init__(self, *proxies: Proxy) -> None:
        self._proxies = proxies
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def __enter__(self) -> ProxyThread:
        self._thread.start()
        for each in self._proxies:
            self._do(each.serve())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        for each in self._proxies:
            each._server.close()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Transports close in the next round of the loop.
        await asyncio.sleep(LOOK_SECONDS)
