"""Leadership for programs without an event loop. A thread with one renews; callbacks run one after
the other on another thread, where they may block."""
from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from . import aio, core
from .core import BatonError, Feed, Value, Values

T = TypeVar("T")
Leadership = core.Leadership[threading.Event]


class Election:
    """Taking part in an election, until leave(). Made by Client.campaign()."""

    def __init__(self, client: Client, part: aio.Election[threading.Event]) -> None:
        self._client = client
        self._part = part

    @property
    def leadership(self) -> Leadership | None:
        """The present term, if this process leads."""
        return self._part.leadership

    @property
    def leader(self) -> tuple[str, int] | None:
        """The leader's name and epoch, as this process knows them."""
        return self._part.leader

    def wait(self, timeout: float | None = None) -> Leadership:
        """Waits until this process leads. TimeoutError; BatonError: it takes part no more."""
        return self._client.run(asyncio.wait_for(self._part.wait(), timeout))

    def resign(self, to: str | None = None, timeout: float = aio.REPLY_S) -> None:
        """Stops leading at once, hands over to `to` or the next in line, and goes on contending."""
        self._client.run(self._part.resign(to, timeout))

    def drained(self) -> None:
        """Says that the work has stopped: leadership is handed over, as was asked for."""
        self._client.run(self._part.drained())

    def leave(self, timeout: float = aio.REPLY_S) -> None:
        """Stops leading at once, and takes part no more."""
        self._client.run(self._part.leave(timeout))


class Client:
    """A connection to the host's agent, for any number of elections, from any thread. OSError or
    BatonError if the agent is not there at first, or refuses; a connection that is lost later
    comes back by itself."""

    def __init__(self, path: str | None = None, *, name: str | None = None,
                 metadata: Any = None) -> None:
        self._pid = os.getpid()
        self._agent = aio.Agent(path, name, metadata, threading.Event)
        self._loop = asyncio.new_event_loop()
        self._callbacks = ThreadPoolExecutor(1, "baton-callbacks")
        self._thread = threading.Thread(target=self._loop.run_forever, name="baton", daemon=True)
        self._thread.start()
        try:
            self.run(self._agent.open())
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops leading at once, and ends the session: all is handed on. May be called twice."""
        if os.getpid() == self._pid and not self._loop.is_closed():
            self.run(self._agent.close())
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._callbacks.shutdown(wait=False)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for what runs on the client's thread."""
        if os.getpid() != self._pid or self._loop.is_closed():
            work.close()
            raise BatonError("ECLOSED", "closed, or a forked child: make a Client of its own")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _on_thread(self, function: aio.Callback[T]) -> Callable[[T], Any]:
        async def call(value: T) -> None:
            if function:
                await self._loop.run_in_executor(self._callbacks, function, value)
        return call

    # ---- Elections

    def campaign(self, election: str, *, priority: int = 0,
                 on_acquired: Callable[[Leadership], None] | None = None,
                 on_drain: Callable[[Leadership], None] | None = None,
                 on_lost: Callable[[Leadership], None] | None = None,
                 on_leader: Callable[[tuple[str, int] | None], None] | None = None) -> Election:
        """Takes part. When on_drain has returned, the work has stopped, and leadership is handed
        over; without it, at once."""
        return Election(self, self.run(self._agent.campaign(
            election, priority=priority, on_acquired=self._on_thread(on_acquired),
            on_drain=self._on_thread(on_drain), on_lost=self._on_thread(on_lost),
            on_leader=self._on_thread(on_leader))))

    @contextmanager
    def lead(self, election: str, *, priority: int = 0,
             timeout: float | None = None) -> Iterator[Leadership]:
        """Leads during the with-block, which begins when this process leads. See baton.lead()."""
        part = self.run(self._agent.enter(aio.Election(self._agent, election, priority, True, {})))
        try:
            yield Election(self, part).wait(timeout)
        finally:
            with suppress(BatonError):  # a forked child has nothing to end
                self.run(part.end())

    # ---- The group, the state, channels

    def members(self, election: str) -> list[dict[str, Any]]:
        return self.run(self._agent.members(election))

    def elections(self) -> list[dict[str, Any]]:
        return self.run(self._agent.elections())

    def set_metadata(self, metadata: Any) -> None:
        self.run(self._agent.set_metadata(metadata))

    def get(self, key: str) -> Value | None:
        return self.run(self._agent.get(key))

    def list(self, prefix: str = "") -> Values:
        return self.run(self._agent.list(prefix))

    def put(self, key: str, data: bytes | str | None, *, revision: int | None = None,
            lifetime: float | None = None) -> int:
        """Writes, or deletes (None), if the key is at `revision` (0: absent; None: any). The value
        goes after `lifetime` seconds. Returns the key's new revision, 0 after a deletion.
        BatonError ECONFLICT: the key is at another revision."""
        return self.run(self._agent.put(key, data, revision=revision, lifetime=lifetime))

    def watch(self, prefix: str, on_change: Callable[[Values], None]) -> Feed:
        return self.run(self._agent.watch(prefix, self._on_thread(on_change)))

    def publish(self, channel: str, data: bytes | str) -> None:
        self.run(self._agent.publish(channel, data))

    def subscribe(self, channel: str, on_message: Callable[[bytes], None]) -> Feed:
        return self.run(self._agent.subscribe(channel, self._on_thread(on_message)))

    def unsubscribe(self, feed: Feed) -> None:
        """Ends what watch() or subscribe() began."""
        self.run(self._agent.unsubscribe(feed))


@contextmanager
def lead(election: str, *, path: str | None = None, name: str | None = None, metadata: Any = None,
         priority: int = 0, timeout: float | None = None) -> Iterator[Leadership]:
    """Leads an election during the with-block, which begins when this process leads:

        with baton.lead("report") as leadership:
            while not leadership.stopping.wait(1.0):
                leadership.check()
                work(leadership.epoch)

    Its end hands leadership on. `stopping` is set when that is asked for, or leadership is lost.
    """
    with Client(path, name=name, metadata=metadata) as client:
        with client.lead(election, priority=priority, timeout=timeout) as leadership:
            yield leadership
