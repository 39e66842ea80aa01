"""Leadership for asyncio. The loop renews: if it stands still, the leases end.

Callbacks are functions, or coroutine functions, and begin in the order of what they report.
"""
from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from . import core
from .core import BatonError, F, Feed, Message, Value, Values, checked

SOCKET = "/run/baton/agent.sock"
REPLY_S = 30.0
END_S = 5.0  # how long the end of a with-block waits for the agent
LOG = logging.getLogger("baton")

T = TypeVar("T")
Callback = Callable[[T], Any] | None
Leadership = core.Leadership[asyncio.Event]


def agent_path() -> str:
    """Where `baton` looks for the agent, too."""
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/run", "baton/agent.sock")
    return os.environ.get("BATON_AGENT") or (
        own if os.geteuid() != 0 and os.path.exists(own) else SOCKET)


def boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Election(Generic[F]):
    """Taking part in an election, until leave(). Made by Client.campaign()."""

    def __init__(self, client: Agent[F], election: str, priority: int, waits: bool,
                 callbacks: dict[str, Callback[Any]]) -> None:
        self._client = client
        self._waits = waits  # for drained(), when leadership is to be handed over
        self._callbacks = callbacks
        self._decided = asyncio.Event()  # leads, or takes part no more
        self._campaign: core.Campaign[F] = core.Campaign(election, self._notify, None, priority)
        self._stopped: str | None = None

    def _notify(self, name: str, value: Any) -> None:
        if name == "stopped":
            self._stopped = value
        if name in ("acquired", "stopped"):
            self._decided.set()
        elif name == "lost":
            self._decided.clear()
        if name == "drain" and not self._waits:
            self._client.start(self._drain(value))
        else:
            self._client.call_back(self._callbacks.get(name), value)

    async def _drain(self, leadership: core.Leadership[F]) -> None:
        if not await self._client.run_callback(self._callbacks.get("drain"), leadership):
            return  # it failed: whether the work has stopped is not known
        with suppress(BatonError, TimeoutError):
            if self.leadership is leadership:
                await self.drained()

    @property
    def leadership(self) -> core.Leadership[F] | None:
        """The present term, if this process leads."""
        leadership = self._campaign.leadership
        return leadership if leadership and leadership.is_leader else None

    @property
    def leader(self) -> tuple[str, int] | None:
        """The leader's name and epoch, as this process knows them."""
        return self._campaign.leader

    async def wait(self) -> core.Leadership[F]:
        """Waits until this process leads. BatonError if it cannot take part any more."""
        while True:
            await self._decided.wait()
            if self._stopped:
                raise BatonError("ECLOSED", f"{self._campaign.election}: {self._stopped}")
            if leadership := self.leadership:
                return leadership
            self._client.step()  # the lease is over

    async def resign(self, to: str | None = None, timeout: float = REPLY_S) -> None:
        """Stops leading at once, hands over to `to` or the next in line, and goes on contending."""
        request = {"do": "resign", "epoch": self._campaign.known_epoch,
                   "timeout_ms": int(timeout * 1000), **({"to": to} if to else {})}
        checked(await self._client.ask(
            lambda done: self._client.machine.resign(self._campaign, done, request), timeout))

    async def drained(self) -> None:
        """Says that the work has stopped: leadership is handed over, as was asked for."""
        checked(await self._client.ask(
            lambda done: self._client.machine.resign(self._campaign, done, {"do": "drained"})))

    async def leave(self, timeout: float = REPLY_S) -> None:
        """Stops leading at once, and takes part no more."""
        checked(await self._client.ask(
            lambda done: self._client.machine.leave(self._campaign, done), timeout))

    async def end(self) -> None:
        """Leaves at the end of a with-block. An agent that is away is not waited for."""
        with suppress(BatonError, TimeoutError):
            await self.leave(END_S if self._client.machine.ready else 0)


class Agent(Generic[F]):
    """A connection to the host's agent, for any number of elections. OSError or BatonError if the
    agent is not there at first, or refuses; a connection that is lost later comes back."""

    def __init__(self, path: str | None, name: str | None, metadata: Any,
                 flag: Callable[[], F]) -> None:
        self.machine: core.Machine[F] = core.Machine(core.hello(name, metadata), boottime, flag)
        self.flag = flag
        self._path = path or agent_path()
        self._pid = os.getpid()
        self._says_bye = False
        self._writer: asyncio.StreamWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._run(greeted))
        try:
            async with asyncio.timeout(REPLY_S):
                await greeted
        except BaseException:
            self._serving.cancel()
            raise

    async def close(self) -> None:
        """Stops leading at once, and ends the session: all is handed on."""
        if os.getpid() != self._pid or self._serving.done():
            return
        self.machine.give_up_all()
        self._says_bye = True
        try:
            if self.machine.ready:
                with suppress(BatonError, TimeoutError):
                    await self._request(END_S, do="bye")
        finally:
            ends = {self._serving, *self._tasks} - {asyncio.current_task()}
            for task in ends:
                task.cancel()
            await asyncio.wait(ends)

    async def campaign(self, election: str, *, priority: int = 0,
                       on_acquired: Callback[core.Leadership[F]] = None,
                       on_drain: Callback[core.Leadership[F]] = None,
                       on_lost: Callback[core.Leadership[F]] = None,
                       on_leader: Callback[tuple[str, int] | None] = None) -> Election[F]:
        """Takes part. When on_drain has returned, the work has stopped, and leadership is handed
        over; without it, at once."""
        return await self.enter(Election(self, election, priority, False, {
            "acquired": on_acquired, "drain": on_drain, "lost": on_lost, "leader": on_leader}))

    @asynccontextmanager
    async def lead(self, election: str, *,
                   priority: int = 0) -> AsyncIterator[core.Leadership[F]]:
        """Leads during the with-block, which begins when this process leads."""
        part = await self.enter(Election(self, election, priority, True, {}))
        try:
            yield await part.wait()
        finally:
            await part.end()

    async def enter(self, part: Election[F]) -> Election[F]:
        def begin(done: core.Done) -> None:
            part._campaign.done = done
            self.machine.campaign(part._campaign)
        checked(await self.ask(begin))
        return part

    # ---- The group, the state, channels

    async def members(self, election: str) -> list[dict[str, Any]]:
        return list((await self._request(do="members", election=election))["members"])

    async def elections(self) -> list[dict[str, Any]]:
        return list((await self._request(do="elections"))["elections"])

    async def set_metadata(self, metadata: Any) -> None:
        checked(await self.ask(lambda done: self.machine.set_metadata(metadata, done)))

    async def get(self, key: str) -> Value | None:
        try:
            values = core.values_of(await self._request(do="get", key=key))
        except BatonError as error:
            if error.code != "ENOENT":
                raise
            return None
        return values[0] if values else None

    async def list(self, prefix: str = "") -> Values:
        return core.values_of(await self._request(do="list", prefix=prefix))

    async def put(self, key: str, data: bytes | str | None, *, revision: int | None = None,
                  lifetime: float | None = None) -> int:
        """Writes, or deletes (None), if the key is at `revision` (0: absent; None: any). The value
        goes after `lifetime` seconds. Returns the key's new revision, 0 after a deletion.
        BatonError ECONFLICT: the key is at another revision."""
        reply = await self._request(
            do="put", key=key, **({"nothing": True} if data is None else core.payload(data)),
            **({} if revision is None else {"revision": revision}),
            **({} if lifetime is None else {"lifetime_ms": int(lifetime * 1000)}))
        return core.whole(reply, "revision")

    async def watch(self, prefix: str, on_change: Callable[[Values], Any]) -> Feed:
        return await self._feed({"do": "watch", "prefix": prefix}, lambda event: self.call_back(
            on_change, core.values_of(event)))

    async def publish(self, channel: str, data: bytes | str) -> None:
        await self._request(do="publish", channel=channel, **core.payload(data))

    async def subscribe(self, channel: str, on_message: Callable[[bytes], Any]) -> Feed:
        return await self._feed({"do": "subscribe", "channel": channel}, lambda event:
                                self.call_back(on_message, core.payload_of(event) or b""))

    async def unsubscribe(self, feed: Feed) -> None:
        """Ends what watch() or subscribe() began."""
        self.machine.end_feed(feed)
        self.step()

    async def _feed(self, request: Message, notify: Callable[[Message], None]) -> Feed:
        feed = Feed(request, notify, None)

        def begin(done: core.Done) -> None:
            feed.done = done
            self.machine.feed(feed)
        checked(await self.ask(begin))
        return feed

    async def _request(self, timeout: float = REPLY_S, **message: Any) -> Message:
        return checked(await self.ask(lambda done: self.machine.request(message, done), timeout))

    async def ask(self, begin: Callable[[core.Done], None], timeout: float = REPLY_S) -> Message:
        if os.getpid() != self._pid or self._serving.done():
            raise BatonError("ECLOSED", "closed, or a forked child: make a Client of its own")
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def done(reply: Message) -> None:
            if not future.done():
                future.set_result(reply)
        begin(done)
        self.step()
        try:
            async with asyncio.timeout(timeout):
                return await future
        finally:
            if not future.done():
                self.machine.forget(done)

    # ---- Callbacks

    def call_back(self, function: Callback[T], value: T) -> None:
        if function:
            self.start(self.run_callback(function, value))

    async def run_callback(self, function: Callback[T], value: T) -> bool:
        try:
            result = function(value) if function else None
            if isinstance(result, Coroutine):
                await result
            return True
        except Exception:
            LOG.exception("a callback failed")
            return False

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- The connection

    def step(self) -> None:
        """Sends what is due, and sets the timer for what comes next."""
        self.machine.tick()
        if self._writer:
            self._writer.write(bytes(self.machine.output))
            self.machine.output.clear()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        wake_ns = self.machine.wake_at()
        if wake_ns is not None:
            delay_s = max(0.0, (wake_ns - boottime()) / 1e9)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.step)

    async def _run(self, greeted: asyncio.Future[None]) -> None:
        try:
            while not self._says_bye:
                try:
                    await self._serve(greeted)
                except (OSError, BatonError) as error:
                    if not greeted.done():
                        greeted.set_exception(error)
                        return
                    LOG.log(logging.WARNING if self.machine.ready and not self._says_bye
                            else logging.DEBUG, "agent at %s: %s", self._path, error)
                finally:
                    if self._writer:
                        self._writer.close()
                        self._writer = None
                delay_s = self.machine.disconnected()
                self.step()
                await asyncio.sleep(delay_s)
        finally:
            self.machine.close()
            if self._timer:
                self._timer.cancel()

    async def _serve(self, greeted: asyncio.Future[None]) -> None:
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path)
        except OSError as error:
            raise type(error)(error.errno or errno.EINVAL, f"{error.strerror or error}; `baton "
                              "agent` serves it, and BATON_AGENT names another one",
                              self._path) from error
        self.machine.connected()
        self.step()
        while data := await reader.read(65536):
            self.machine.received(data)
            self.step()
            if self.machine.ready and not greeted.done():
                greeted.set_result(None)
        raise BatonError("EUNAVAILABLE", "the agent closed the connection")


class Client(Agent[asyncio.Event]):
    """`async with baton.aio.Client() as client:` of a program that uses asyncio."""

    def __init__(self, path: str | None = None, *, name: str | None = None,
                 metadata: Any = None) -> None:
        super().__init__(path, name, metadata, asyncio.Event)

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@asynccontextmanager
async def lead(election: str, *, path: str | None = None, name: str | None = None,
               metadata: Any = None, priority: int = 0) -> AsyncIterator[Leadership]:
    """As baton.lead(): `async with baton.aio.lead("report") as leadership:`"""
    async with Client(path, name=name, metadata=metadata) as client:
        async with client.lead(election, priority=priority) as leadership:
            yield leadership
