"""Work that many processes share, for asyncio: submitting it, and running it.

    async with baton.aio.Client() as client:
        pool = baton.work.aio.Pool(client, "render")
        async with pool.worker("w1", render, slots=4):     # async def render(run): ...
            given = await pool.submit(["frame 1", "frame 2"])
            results = await pool.wait(given.ids)
"""
from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic

from ..aio import Agent, Election
from ..core import BatonError, F, Feed, Leadership, Lost, Values
from . import core
from .core import Entry, Held, Item, Result, Submission

LOOK_S = 2.0  # between two looks for ends that leave no result
RETRY_S = 1.0
ASK_S = 0.25  # between two questions to the leader
STATUS_S = 5.0
REPORT_S = 1.0
LEAVE_S = 30.0
LOG = logging.getLogger("baton")

Output = bytes | str | None


class Run(Generic[F]):
    """An attempt at an item, which runs here. `stopping` is set when it is to end: the item was
    cancelled or moves, the worker leaves, or may not act any more."""

    def __init__(self, worker: Worker[F], held: Held, leadership: Leadership[F],
                 stopping: F) -> None:
        item = held.now.item
        self.id: str = item["id"]
        self.body = core.bytes_of(item, "body")
        self.epoch = held.now.epoch  # of this attempt: goes with each write
        self.attempt = held.now.attempt  # from 1
        self.is_service: bool = item.get("kind") == "service"
        self.checkpoint: bytes | None = None  # what an earlier attempt saved last
        self.stopping = stopping
        self._worker = worker
        self._held = held
        self._leadership = leadership
        self._revision = 0  # of the checkpoint
        self._task: asyncio.Task[Output] | None = None  # the call of the function
        self._is_over = False
        self._is_refused = False  # was told that it may not act

    @property
    def may_act(self) -> bool:
        """Whether the run may act now: compares the worker's lease with the clock."""
        return not self._is_over and self._leadership.is_leader

    @property
    def should_stop(self) -> bool:
        """Whether the run is to end. Once it was so it stays so, and the function's result is
        dropped: the item runs again, elsewhere or here."""
        self._is_refused = self._is_refused or not self.may_act
        return self._is_refused or self.stopping.is_set()

    def check(self) -> None:
        """Raises Lost unless the run may act now. Ask before each effect. After it has raised Lost,
        the function's result is dropped, as after should_stop."""
        if not self.may_act:
            self._is_refused = True
            raise Lost("ELOST", f"item {self.id}: this attempt is over")

    def progress(self, part: float) -> None:
        """How much is done, 0 to 1, for the status. Any thread."""
        self._held.progress_permille = max(0, min(1000, round(part * 1000)))

    async def read_checkpoint(self) -> None:
        """Before the run begins. What is there at a first attempt is of an earlier item."""
        while self.attempt > 1 and not self.stopping.is_set():
            try:
                value = await self._worker.client.get(self._worker.key("k", self.id))
            except (BatonError, TimeoutError) as error:
                LOG.warning("checkpoint of %s: %s", self.id, error)
                await asyncio.sleep(RETRY_S)
                continue
            if value:
                _, self.checkpoint = core.checkpoint_of(value.data)
                self._revision = value.revision
            return

    async def save(self, data: bytes | str) -> None:
        """Stores what the item's next attempt gets as its checkpoint. Lost: a later attempt has
        stored one, so this one is out of date."""
        raw = data.encode() if isinstance(data, str) else data
        if len(raw) > core.CHECKPOINT_MAX:
            raise BatonError("ETOOBIG", f"checkpoint of {self.id}: {len(raw)} bytes, at most "
                                        f"{core.CHECKPOINT_MAX}")
        client, key = self._worker.client, self._worker.key("k", self.id)
        while True:
            try:
                self._revision = await client.put(key, core.checkpoint(self.epoch, raw),
                                                  revision=self._revision)
                return
            except BatonError as error:
                if error.code != "ECONFLICT":
                    raise
            value = await client.get(key)
            self._revision = value.revision if value else 0
            if value and core.checkpoint_of(value.data)[0] > self.epoch:
                self.stopping.set()
                raise Lost("ELOST", f"item {self.id}: a later attempt has saved a checkpoint")


Function = Callable[[Run[F]], Coroutine[Any, Any, Output]]


class Worker(Generic[F]):
    """This process as a worker of a pool. Made by Pool.worker()."""

    def __init__(self, client: Agent[F], pool: str, name: str, function: Function[F],
                 report_interval: float, about: dict[str, Any]) -> None:
        self.client = client
        self._pool = pool
        self._machine = core.Worker(name, **about)
        self._function = function
        self._interval = report_interval
        self._leadership: Leadership[F] | None = None
        self._runs: dict[Held, Run[F]] = {}
        self._feeds: list[Feed] = []
        self._part: Election[F] = Election(client, self.key(name), 0, True, {
            "acquired": self._on_acquired, "drain": self._on_drain, "lost": self._on_lost})
        self._channels = [self.key(name), self.key("all")]
        self._is_draining = False
        self._changed = asyncio.Event()

    def key(self, *parts: str) -> str:
        return "/".join(("work", self._pool, *parts))

    async def begin(self) -> None:
        for channel in self._channels:
            self._feeds.append(await self.client.subscribe(channel, self._on_message))
        await self.client.enter(self._part)
        self._ticking = asyncio.create_task(self._tick())

    async def leave(self, timeout: float = LEAVE_S) -> None:
        """Takes nothing new; services move, and jobs end. What still runs after `timeout` is
        stopped and goes on elsewhere: TimeoutError, once it has ended here."""
        self._machine.leave()
        self._drive()
        try:
            async with asyncio.timeout(timeout):
                await self._until(lambda: self._machine.is_idle)
        finally:
            self._machine.session(0)
            self._drive()
            await self._until(lambda: not self._runs)
            await self._end()

    async def leave_quietly(self, timeout: float) -> None:
        """At the end of a with-block: what was cut off goes on elsewhere."""
        with suppress(TimeoutError):
            await self.leave(timeout)

    async def _end(self) -> None:
        self._ticking.cancel()
        await self._part.end()
        for feed in self._feeds:
            await self.client.unsubscribe(feed)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            self._machine.tick()
            self._drive()

    # ---- What the agent and the leader say

    def _on_acquired(self, leadership: Leadership[F]) -> None:
        self._leadership = leadership
        self._is_draining = False
        self._machine.session(leadership.epoch)
        self._drive()

    def _on_drain(self, _: Leadership[F]) -> None:
        self._is_draining = True
        self._machine.session(0)
        self._drive()

    def _on_lost(self, leadership: Leadership[F]) -> None:
        if leadership is self._leadership:
            self._machine.session(0)
            self._drive()

    def _on_message(self, data: bytes) -> None:
        self._machine.hear(data)
        self._drive()

    # ---- What is to be done

    def _drive(self) -> None:
        for held in self._machine.orders():
            if held.state == core.RUNNING:
                self._start(held)
            elif held in self._runs:
                self._halt(self._runs[held])
        for message in self._machine.messages():
            self.client.start(self._send(message))
        if self._is_draining and not self._runs:
            self._is_draining = False
            self.client.start(self._drained())
        self._changed.set()

    async def _send(self, message: str) -> None:
        with suppress(BatonError, TimeoutError):  # reports heal what is lost
            await self.client.publish(self.key(), message)

    async def _drained(self) -> None:
        with suppress(BatonError, TimeoutError):
            await self._part.drained()

    def _start(self, held: Held) -> None:
        leadership = self._leadership
        assert leadership  # it has a session
        run = self._runs[held] = Run(self, held, leadership, self.client.flag())
        self.client.start(self._run(held, run))

    def _halt(self, run: Run[F]) -> None:
        run.stopping.set()
        if run._task and isinstance(run.stopping, asyncio.Event):
            run._task.cancel()

    async def _run(self, held: Held, run: Run[F]) -> None:
        began = time.time()
        result: dict[str, Any] = {"success": False, "code": 1}
        try:
            await run.read_checkpoint()
            if not run.should_stop:
                run._task = asyncio.create_task(self._function(run))
                result = {"success": True, "code": 0, **output_of(await run._task)}
        except asyncio.CancelledError:
            pass  # halted, or the program ends
        except Exception as error:
            if not run._is_refused:
                LOG.exception("item %s failed", run.id)
            result.update(output_of(f"{type(error).__name__}: {error}"[:core.OUTPUT_MAX // 4]))
        run._is_over = True
        del self._runs[held]
        result.update(began_unix_ms=int(began * 1000), ended_unix_ms=int(time.time() * 1000))
        self._machine.ended(held, run.epoch, None if run._is_refused else result)
        self._drive()


def output_of(output: Output) -> dict[str, Any]:
    raw = output.encode() if isinstance(output, str) else output or b""
    if len(raw) > core.OUTPUT_MAX:
        raise BatonError("ETOOBIG", f"an output of {len(raw)} bytes, at most {core.OUTPUT_MAX}")
    return core.bytes_member("output", raw)


class Pool(Generic[F]):
    """A pool by its name, as the other members of `client`'s provider know it. For submitting and
    asking, no part in it is needed. A program in C, or `baton worker`, leads it."""

    def __init__(self, client: Agent[F], name: str) -> None:
        core.check_name("pool", name, core.POOL_MAX)
        self._client = client
        self._name = name

    def _key(self, *parts: str) -> str:
        return "/".join(("work", self._name, *parts))

    async def submit(self, items: Sequence[Item], name: str | None = None) -> Submission:
        """Submits items: texts or bytes are their bodies; a dict has the members of docs/work.md.
        The same items by the same name are submitted once. BatonError EEXIST: other items were."""
        submission, chunks = core.chunks_of(name, items)
        for chunk, value in chunks:
            key = self._key("s", chunk)
            try:
                await self._client.put(key, value, revision=0)
            except BatonError as error:
                if error.code != "ECONFLICT":
                    raise
                stored = await self._client.get(key)
                if not stored or stored.data != value.encode():
                    raise BatonError("EEXIST", f"submission {submission.name}: there is one with "
                                               "other items") from error
        return submission

    async def cancel(self, item: str) -> None:
        """Ends the item for good: a run of it is stopped, and none begins."""
        await self._client.put(self._key("c", item), "{}")

    async def result(self, item: str) -> Result | None:
        """None: the item has not ended, or its result is no longer kept."""
        value = await self._client.get(self._key("r", item))
        return core.result_of(value.data) if value and value.data else None

    async def items(self) -> list[Entry]:
        """All that the ledger has, by their ids. What was submitted just now may not be there."""
        return sorted((entry for value in await self._client.list(self._key("b/")) if value.data
                       for entry in core.entries_of(value.data)), key=lambda entry: entry.id)

    async def drain(self, worker: str) -> None:
        """The worker gets nothing new, its services move, and its jobs go on: until undrain(),
        also if it is started again."""
        await self._client.put(self._drain_key(worker), "{}")

    async def undrain(self, worker: str) -> None:
        await self._client.put(self._drain_key(worker), None)

    def _drain_key(self, worker: str) -> str:
        core.check_name("worker", worker, core.WORKER_MAX)
        return self._key("d", worker)

    async def status(self, timeout: float = STATUS_S) -> dict[str, Any]:
        """The leader's, as `baton work stats --json` prints it: workers, items, waiting, counters.
        TimeoutError: nobody leads."""
        token = secrets.token_hex(8)
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def on_message(data: bytes) -> None:
            if not reply.done():
                reply.set_result(json.loads(data))
        feed = await self._client.subscribe(self._key("reply", token), on_message)
        try:
            async with asyncio.timeout(timeout):
                while not reply.done():
                    await self._client.publish(self._key("ask/status"), token)
                    await asyncio.wait([reply], timeout=ASK_S)
            return reply.result()
        finally:
            await self._client.unsubscribe(feed)

    async def wait(self, items: Sequence[str], timeout: float | None = None) -> list[Result]:
        """Waits until all have ended; their ends, in the order of the ids. TimeoutError."""
        core.check_list(str(items), items)
        ends: dict[str, Result] = {}
        left = asyncio.Event()

        def on_change(values: Values) -> None:
            for value in values:
                if value.data:
                    with suppress(LookupError, TypeError, ValueError):
                        result = core.result_of(value.data)
                        ends[result.id] = result
            if all(item in ends for item in items):
                left.set()
        feed = await self._client.watch(self._key("r", os.path.commonprefix(list(items))),
                                        on_change)
        try:
            async with asyncio.timeout(timeout):
                while not all(item in ends for item in items):
                    await self._look(items, ends)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await left.wait()
        finally:
            await self._client.unsubscribe(feed)
        return [ends[item] for item in items]

    async def _look(self, items: Sequence[str], ends: dict[str, Result]) -> None:
        """What ends without a result is found in the ledger."""
        waited = {item for item in items if item not in ends}
        for bucket in {core.bucket_of(item) for item in waited}:
            value = await self._client.get(self._key("b", f"{bucket:02}"))
            for entry in core.entries_of(value.data) if value and value.data else ():
                if entry.id in waited and entry.state in core.STATES:
                    result = await self.result(entry.id)
                    ends.setdefault(entry.id, result or Result(entry.id, entry.state))

    @asynccontextmanager
    async def worker(self, name: str, function: Function[F], *, leave: float = LEAVE_S,
                     report_interval: float = REPORT_S,
                     **about: Any) -> AsyncIterator[Worker[F]]:
        """A worker during the with-block, at whose end it leaves within `leave` seconds. Each item
        is a call of function(run), whose result is the item's output, and whose exception its
        failure. `about`: slots, gpus, memory_mib, labels. When the run is to stop, it is cancelled.
        """
        worker = Worker(self._client, self._name, name, function, report_interval, about)
        await worker.begin()
        try:
            yield worker
        finally:
            await worker.leave_quietly(leave)
