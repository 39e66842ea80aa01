"""Work that many processes share: submitting it, and running it, each item on a thread.

    with baton.Client() as client:
        pool = baton.work.Pool(client, "render")
        with pool.worker("w1", render, slots=4):     # def render(run): ...
            given = pool.submit(["frame 1", "frame 2"])
            results = pool.wait(given.ids)
"""
from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..client import Client
from . import aio
from .aio import LEAVE_S, REPORT_S, STATUS_S, Output
from .core import Entry, Item, Result, Submission

__all__ = ["Entry", "Pool", "Result", "Run", "Submission", "aio"]


class Run:
    """An attempt at an item, which runs on a thread here. `stopping` is set when it is to end: the
    item was cancelled or moves, the worker leaves, or may not act any more."""

    def __init__(self, client: Client, run: aio.Run[threading.Event]) -> None:
        self._client = client
        self._run = run
        self.id = run.id
        self.body = run.body
        self.epoch = run.epoch  # of this attempt: goes with each write
        self.attempt = run.attempt  # from 1
        self.is_service = run.is_service
        self.checkpoint = run.checkpoint  # what an earlier attempt saved last, or None
        self.stopping = run.stopping

    @property
    def may_act(self) -> bool:
        """Whether the run may act now: compares the worker's lease with the clock."""
        return self._run.may_act

    @property
    def should_stop(self) -> bool:
        """Whether the run is to end. Once it was so it stays so, and the function's result is
        dropped: the item runs again, elsewhere or here."""
        return self._run.should_stop

    def check(self) -> None:
        """Raises Lost unless the run may act now. Ask before each effect. After it has raised Lost,
        the function's result is dropped, as after should_stop."""
        self._run.check()

    def progress(self, part: float) -> None:
        """How much is done, 0 to 1, for the status."""
        self._run.progress(part)

    def save(self, data: bytes | str) -> None:
        """Stores what the item's next attempt gets as its checkpoint. Lost: a later attempt has
        stored one, so this one is out of date."""
        self._client.run(self._run.save(data))


Function = Callable[[Run], Output]


class Pool:
    """A pool by its name. For submitting and asking, no part in it is needed. A program in C, or
    `baton worker`, leads it."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._pool = aio.Pool(client._agent, name)

    def submit(self, items: Sequence[Item], name: str | None = None) -> Submission:
        """Submits items: texts or bytes are their bodies; a dict has the members of docs/work.md.
        The same items by the same name are submitted once. BatonError EEXIST: other items were."""
        return self._client.run(self._pool.submit(items, name))

    def cancel(self, item: str) -> None:
        """Ends the item for good: a run of it is stopped, and none begins."""
        self._client.run(self._pool.cancel(item))

    def result(self, item: str) -> Result | None:
        """None: the item has not ended, or its result is no longer kept."""
        return self._client.run(self._pool.result(item))

    def items(self) -> list[Entry]:
        """All that the ledger has, by their ids. What was submitted just now may not be there."""
        return self._client.run(self._pool.items())

    def drain(self, worker: str) -> None:
        """The worker gets nothing new, its services move, and its jobs go on: until undrain(),
        also if it is started again."""
        self._client.run(self._pool.drain(worker))

    def undrain(self, worker: str) -> None:
        self._client.run(self._pool.undrain(worker))

    def status(self, timeout: float = STATUS_S) -> dict[str, Any]:
        """The leader's, as `baton work stats --json` prints it: workers, items, waiting, counters.
        TimeoutError: nobody leads."""
        return self._client.run(self._pool.status(timeout))

    def wait(self, items: Sequence[str], timeout: float | None = None) -> list[Result]:
        """Waits until all have ended; their ends, in the order of the ids. TimeoutError."""
        return self._client.run(self._pool.wait(items, timeout))

    @contextmanager
    def worker(self, name: str, function: Function, *, leave: float = LEAVE_S,
               report_interval: float = REPORT_S, **about: Any) -> Iterator[None]:
        """A worker during the with-block, at whose end it leaves within `leave` seconds. Each item
        is a call of function(run) on a thread of its own, whose result is the item's output, and
        whose exception its failure. `about`: slots, gpus, memory_mib, labels. A run that is to stop
        has `stopping` set, and its thread is waited for."""
        async def begin() -> aio.Worker[threading.Event]:
            worker = aio.Worker(self._client._agent, self._pool._name, name,
                                lambda run: on_thread(function, Run(self._client, run)),
                                report_interval, about)
            await worker.begin()
            return worker
        worker = self._client.run(begin())
        try:
            yield
        finally:
            self._client.run(worker.leave_quietly(leave))


async def on_thread(function: Function, run: Run) -> Output:
    """A daemon, so that a run which hangs does not keep the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Output] = loop.create_future()

    def finish(output: Output, error: BaseException | None) -> None:
        if not done.done():
            if error:
                done.set_exception(error)
            else:
                done.set_result(output)

    def body() -> None:
        output, error = None, None
        try:
            output = function(run)
        except BaseException as raised:
            error = raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
        loop.call_soon_threadsafe(finish, output, error)
    threading.Thread(target=body, name="baton-run", daemon=True).start()
    return await done
