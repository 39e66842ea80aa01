"""The client's side of the agent's protocol, without I/O: bytes and a clock come in, bytes and
calls of the user's side go out. aio.py moves the bytes, client.py does so on a thread of its own.

        connected()       hello's reply         disconnected()
    away ───────────▶ hello ─────────────▶ ready ─────────────────▶ away
                         every campaign and feed is sent again

A lost connection ends no leadership: the agent, or the next one, continues the session, and each
leadership lasts until its lease ends by this machine's clock. A lease only comes from `renew`:
it ends `left_ms` after the instant at which that request was *made*, so a reply that arrives late
is worth less, never too much. Whether two clocks agree does not matter.
"""
from __future__ import annotations

import base64
import json
import math
import os
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

LINE_MAX = 2 << 20  # bytes of a message
PARTS_MAX = 512  # messages of one reply; an agent sends at most 385
SENT_MAX = 1000  # requests without a reply; the agent allows 1024
RENEWS_MAX = 2  # of these, renewals
WAITING_MAX = 65536  # requests that wait for the agent, or for SENT_MAX
BACKOFF_S = (0.01, 0.5)

Message = dict[str, Any]
Done = Callable[[Message], None]
Clock = Callable[[], int]  # nanoseconds, also while the machine is suspended


class BatonError(Exception):
    """A request failed; `code` is the name of the library's error without BATON_: "EINVAL"."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Lost(BatonError):
    """This process does not lead in that epoch any more, or not yet."""


class Flag(Protocol):
    """threading.Event or asyncio.Event."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...


F = TypeVar("F", bound=Flag)

DISCONNECTED: Message = {"ok": False, "code": "EUNAVAILABLE", "error":
                         "the connection to the agent was lost before it replied"}


class Leadership(Generic[F]):
    """One term as leader. `stopping` is set when the work should stop: leadership is to be handed
    over, or is lost. `lost` is set when it is over, and `reason` says why."""

    def __init__(self, election: str, epoch: int, clock: Clock, flag: Callable[[], F]) -> None:
        self.election = election
        self.epoch = epoch
        self.stopping: F = flag()
        self.lost: F = flag()
        self.reason: str | None = None
        self._end_ns = 0
        self._clock = clock
        self._pid = os.getpid()

    @property
    def is_leader(self) -> bool:
        """Whether this process may act now. Never true in a forked child."""
        return self.remaining_ns > 0

    @property
    def remaining_ns(self) -> int:
        """Nanoseconds until the lease ends if it is not renewed; 0 or less: it is over."""
        if self.reason is not None or os.getpid() != self._pid:
            return 0
        return self._end_ns - self._clock()

    @property
    def should_stop(self) -> bool:
        return self.stopping.is_set() or not self.is_leader

    def check(self) -> None:
        """Raises Lost unless this process may act now."""
        if not self.is_leader:
            raise Lost("ELOST", f"{self.election}: no longer leading in epoch {self.epoch}: "
                                f"{self.reason or 'the lease is over'}")

    def _end(self, reason: str) -> None:
        self.reason = reason
        self._end_ns = 0
        self.stopping.set()
        self.lost.set()


@dataclass(eq=False)
class Campaign(Generic[F]):
    """What this process wants of an election, and what it knows of it."""

    election: str
    notify: Callable[[str, Any], None]  # "acquired", "drain", "lost", "leader", "stopped"
    done: Done | None  # of the first request
    priority: int = 0
    eligible: bool = True
    leader: tuple[str, int] | None = None  # its name and its epoch
    known_epoch: int = 0  # the latest that was granted to this process
    leadership: Leadership[F] | None = None  # while it is not given up
    granted_at: int = 0  # the id of the last request before the grant
    acts: bool = False  # the user was told of the leadership
    owed: int = 0  # the epoch that was given up, until the agent confirms that
    resigning: bool = False
    left: list[Done] = field(default_factory=list)  # not empty: it leaves


@dataclass(eq=False)
class Feed:
    """A watch or a subscription: the request for it, and where its events go."""

    request: Message
    notify: Callable[[Message], None]
    done: Done | None
    id: int = 0  # of the request on the present connection


@dataclass(frozen=True)
class Value:
    """A value of the state; `data` is None if the key is gone."""

    key: str
    data: bytes | None
    revision: int


Values = list[Value]


def payload(data: bytes | str) -> Message:
    if isinstance(data, str):
        return {"text": data}
    return {"base64": base64.b64encode(data).decode()}


def payload_of(message: Message) -> bytes | None:
    if isinstance(message.get("text"), str):
        return str(message["text"]).encode()
    return base64.b64decode(message["base64"]) if "base64" in message else None


def value_of(message: Message) -> Value:
    return Value(message["key"], payload_of(message), message.get("revision", 0))


def checked(reply: Message) -> Message:
    if not reply["ok"]:
        raise BatonError(str(reply.get("code")), str(reply.get("error")))
    return reply


def values_of(message: Message) -> Values:
    return [value_of(value) for value in message["values"]]


def whole(message: Message, name: str) -> int:
    number = message[name]
    if type(number) is not int or number < 0:
        raise ValueError(f"{name} {number!r}: no whole number")
    return number


def amount(message: Message, name: str) -> float:
    number = message[name]
    if type(number) not in (int, float) or not math.isfinite(number):
        raise ValueError(f"{name} {number!r}: no number")
    return float(number)


def hello(name: str | None, metadata: Any) -> Message:
    """What this process says of itself; its start shows the agent that the pid was not reused."""
    message: Message = {"version": 1, "secret": secrets.token_hex(32), "pid": os.getpid()}
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            message["start"] = int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        pass
    if name is not None:
        message["name"] = name
    if metadata is not None:
        message["metadata"] = metadata
    return message


class Machine(Generic[F]):
    """The state machine. After each call, send `output`, and call tick() at wake_at()."""

    def __init__(self, greeting: Message, clock: Clock, flag: Callable[[], F]) -> None:
        self.agent: Message = {}  # its reply to hello
        self.session: str | None = None
        self.ready = False
        self.output = bytearray()  # to be sent
        self.campaigns: dict[str, Campaign[F]] = {}
        self._greeting = greeting
        self._clock = clock
        self._flag = flag
        self._feeds: list[Feed] = []
        self._input = bytearray()
        self._last_id = 0
        self._sent: dict[int, Done] = {}
        self._parts: dict[int, list[list[Message]]] = {}  # of their replies: the values so far
        self._waiting: deque[tuple[Message, Done]] = deque()  # of the user's
        self._restoring: deque[tuple[Message, Done]] = deque()  # of this connection
        self._renew_at = 0
        self._renews = 0  # under way
        self._has_grants = False  # no renewal was sent since the last grant
        self._backoff_s = BACKOFF_S[0]

    # ---- The connection

    def connected(self) -> None:
        self._input.clear()
        resumed = {"session": self.session} if self.session else {}
        self._send(self._numbered({"do": "hello", **self._greeting, **resumed}), self._greeted)

    def disconnected(self) -> float:
        """The connection was lost or refused; returns the seconds until the next attempt."""
        self.ready = False
        self.output.clear()
        given_up = [*self._sent.values(), *(done for _, done in self._restoring)]
        self._sent.clear()
        self._parts.clear()
        self._restoring.clear()
        for done in given_up:
            done(DISCONNECTED)
        delay_s = self._backoff_s
        self._backoff_s = min(2 * delay_s, BACKOFF_S[1])
        return delay_s

    def received(self, data: bytes) -> None:
        """Raises BatonError if the bytes are none of an agent, or if it refuses this client: close
        the connection then."""
        self._expire(self._clock())
        self._input += data
        *lines, rest = self._input.split(b"\n")
        self._input = rest
        try:
            for line in lines:
                self._take_message(json.loads(line))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
                ValueError) as error:
            raise BatonError("EPROTO", f"no message of an agent arrived: {error!r}") from error
        if len(self._input) > LINE_MAX:
            raise BatonError("EPROTO", f"a message of more than {LINE_MAX} bytes")
        if self._has_grants and self._renews < RENEWS_MAX:
            self._renew(self._clock())  # one for all: with its reply they may be acted upon
        self._pump()

    def tick(self) -> None:
        now = self._clock()
        self._expire(now)
        if self.ready and now >= self._renew_at and self._renews == 0:
            for campaign in self.campaigns.values():
                self._resign(campaign)
            self._renew(now)
            self._pump()

    def wake_at(self) -> int | None:
        """When tick() is due, by the clock."""
        times = [c.leadership._end_ns for c in self.campaigns.values() if c.leadership and c.acts]
        if self.ready and self._renews == 0:
            times.append(self._renew_at)
        return min(times, default=None)

    # ---- The user's side

    def request(self, message: Message, done: Done) -> None:
        """Sends a request as soon as there is an agent; done() gets its one reply."""
        if len(self._waiting) >= WAITING_MAX:
            raise BatonError("EBUSY", f"{WAITING_MAX} requests wait for the agent")
        self._waiting.append((self._numbered(message), done))
        self._pump()

    def forget(self, done: Done) -> None:
        """Nobody waits for this reply any more; a request that was not sent is not sent."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] is not done)

    def campaign(self, campaign: Campaign[F]) -> None:
        if campaign.election in self.campaigns:
            raise BatonError("EEXIST", f"{campaign.election}: this client takes part already")
        self.campaigns[campaign.election] = campaign
        if self.ready:
            self._enter(campaign)

    def resign(self, campaign: Campaign[F], done: Done, request: Message) -> None:
        """Stops acting, and only then says so: `request` is a resign, or the reply to a drain."""
        if not campaign.leadership:
            raise BatonError("ENOTLEADER", f"{campaign.election}: not led by this process")
        self._give_up(campaign, "resigned")
        if self.ready:
            self._resign(campaign, done, request)
        else:
            done(DISCONNECTED)

    def leave(self, campaign: Campaign[F], done: Done) -> None:
        if self.campaigns.get(campaign.election) is not campaign:
            done({"ok": True})
            return
        if campaign.leadership:
            self._give_up(campaign, "left")
        campaign.left.append(done)
        if self.ready and len(campaign.left) == 1:
            self._leave(campaign)

    def give_up_all(self) -> None:
        for campaign in self.campaigns.values():
            if campaign.leadership:
                self._give_up(campaign, "closed")

    def close(self) -> None:
        """No connection will follow."""
        self.disconnected()
        for campaign in list(self.campaigns.values()):
            self._remove(campaign, "closed")
        while self._waiting:
            self._waiting.popleft()[1](DISCONNECTED)

    def set_metadata(self, metadata: Any, done: Done) -> None:
        self._greeting["metadata"] = metadata
        self.request({"do": "metadata", "metadata": metadata}, done)

    def feed(self, feed: Feed) -> None:
        self._feeds.append(feed)
        if self.ready:
            self._feed(feed)

    def end_feed(self, feed: Feed) -> None:
        self._feeds.remove(feed)
        if self.ready:
            self._queue({"do": "unwatch", "watch": feed.id} if "prefix" in feed.request else
                        {"do": "unsubscribe", "channel": feed.request["channel"]},
                        lambda reply: None)

    # ---- What is sent

    def _numbered(self, message: Message) -> Message:
        self._last_id += 1
        return {"id": self._last_id, **message}

    def _send(self, message: Message, done: Done) -> None:
        self._sent[message["id"]] = done
        self.output += json.dumps(message).encode() + b"\n"

    def _queue(self, message: Message, done: Done) -> int:
        """Sends what the next connection will repeat by itself, if it is still wanted then."""
        self._restoring.append((self._numbered(message), done))
        self._pump()
        return self._last_id

    def _pump(self) -> None:
        for queue in (self._restoring, self._waiting):
            while self.ready and queue and len(self._sent) < SENT_MAX:
                self._send(*queue.popleft())

    def _renew(self, now: int) -> None:
        self._renew_at = now + int(self.agent["renew_ms"] * 1e6)
        self._renews += 1
        self._has_grants = False
        message = self._numbered({"do": "renew"})
        self._send(message, lambda reply: self._renewed(message["id"], now, reply))

    def _enter(self, campaign: Campaign[F]) -> None:
        self._queue({"do": "campaign", "election": campaign.election,
                     "priority": campaign.priority, "eligible": campaign.eligible,
                     "known_epoch": campaign.known_epoch,
                     "acts": campaign.leadership is not None},
                    lambda reply: self._entered(campaign, reply))
        if campaign.left:
            self._leave(campaign)

    def _leave(self, campaign: Campaign[F]) -> None:
        self._queue({"do": "leave", "election": campaign.election},
                    lambda reply: self._has_left(campaign, reply))

    def _resign(self, campaign: Campaign[F], done: Done | None = None,
                request: Message | None = None) -> None:
        """Sends that an epoch was given up, again and again until the agent confirms it."""
        if campaign.owed and not campaign.resigning:
            campaign.resigning = True
            epoch = campaign.owed
            request = request or {"do": "resign", "epoch": epoch}
            self._queue({**request, "election": campaign.election},
                        lambda reply: self._resigned(campaign, epoch, done, reply))

    def _feed(self, feed: Feed) -> None:
        feed.id = self._queue(feed.request, lambda reply: self._fed(feed, reply))

    # ---- What is received

    def _take_message(self, message: Message) -> None:
        if "event" in message:
            take = getattr(self, "_on_" + str(message["event"]).replace("-", "_"), None)
            if take:  # events of later versions are ignored
                take(message)
        elif "id" in message:
            self._take_reply(whole(message, "id"), message)
        else:
            raise BatonError(str(message.get("code", "EPROTO")), str(message.get("error")))

    def _take_reply(self, number: int, reply: Message) -> None:
        if number not in self._sent:
            return
        parts = self._parts.setdefault(number, [])
        if "values" in reply:
            parts.append(reply["values"])
        if len(parts) > PARTS_MAX:
            raise ValueError(f"a reply in more than {PARTS_MAX} parts")
        if reply.get("more") is not True:
            del self._parts[number]
            values = {"values": [value for part in parts for value in part]} if parts else {}
            self._sent.pop(number)({"ok": False, **reply, **values})

    def _greeted(self, reply: Message) -> None:
        if reply is DISCONNECTED:
            return
        if not reply["ok"]:
            if self.session and reply.get("code") in ("ENOENT", "EAUTH"):
                self._set_session(None)  # the next attempt opens another one
            raise BatonError(str(reply.get("code")), str(reply.get("error")))
        if not (0 < amount(reply, "renew_ms") <= amount(reply, "lifetime_ms")):
            raise ValueError("renew_ms or lifetime_ms")
        self.agent = reply
        self.ready = True
        self._backoff_s = BACKOFF_S[0]
        self._renew(self._clock())
        for campaign in self.campaigns.values():
            self._enter(campaign)
        for feed in self._feeds:
            self._feed(feed)

    def _renewed(self, number: int, sent: int, reply: Message) -> None:
        self._renews -= 1
        if not reply["ok"]:
            return
        left_ms = min(max(0, amount(reply, "left_ms")), self.agent["lifetime_ms"])
        end = sent + int(left_ms * 1e6)
        for campaign in list(self.campaigns.values()):
            leadership = campaign.leadership
            if leadership and number > campaign.granted_at and end > leadership._end_ns:
                leadership._end_ns = end  # a promise is never taken back
                if not campaign.acts and leadership.is_leader:
                    campaign.acts = True
                    campaign.notify("acquired", leadership)

    def _entered(self, campaign: Campaign[F], reply: Message) -> None:
        if reply is DISCONNECTED:
            return
        done, campaign.done = campaign.done, None
        if done:
            done(reply)
        if not reply["ok"]:
            self._remove(campaign, str(reply.get("error")))

    def _has_left(self, campaign: Campaign[F], reply: Message) -> None:
        if reply is not DISCONNECTED and not reply["ok"]:
            self._remove(campaign, "left")  # else the event "stopped" comes, the last of it

    def _resigned(self, campaign: Campaign[F], epoch: int, done: Done | None,
                  reply: Message) -> None:
        campaign.resigning = False
        if campaign.owed == epoch and (reply["ok"] or reply.get("code") == "ENOTLEADER"):
            campaign.owed = 0
        if done:
            done(reply)

    def _fed(self, feed: Feed, reply: Message) -> None:
        if reply is DISCONNECTED:
            return
        if feed.done:
            feed.done(reply)
            feed.done = None
        if not reply["ok"] and feed in self._feeds:
            self._feeds.remove(feed)

    def _on_session(self, event: Message) -> None:
        session = event["session"]
        if not isinstance(session, str | None):
            raise ValueError(f"session {session!r}: no text")
        self._set_session(None if session == "0" else session)

    def _on_leadership_acquired(self, event: Message) -> None:
        campaign = self.campaigns.get(event["election"])
        epoch = whole(event, "epoch")
        if not campaign or campaign.left:
            return
        if campaign.leadership and epoch == campaign.leadership.epoch:
            return  # it goes on, by another agent
        if epoch <= campaign.known_epoch:
            campaign.owed = campaign.known_epoch = epoch  # was given up: never acted in again
            self._resign(campaign)
            return
        if campaign.leadership:
            self._lose(campaign, "another epoch")
        campaign.known_epoch = epoch
        campaign.owed = 0
        campaign.leadership = Leadership(campaign.election, epoch, self._clock, self._flag)
        campaign.granted_at = self._last_id
        campaign.acts = False
        self._has_grants = True

    def _on_leadership_lost(self, event: Message) -> None:
        campaign = self.campaigns.get(event["election"])
        epoch = whole(event, "epoch")
        if campaign and campaign.owed <= epoch:
            campaign.owed = 0
        if campaign and campaign.leadership and campaign.leadership.epoch <= epoch:
            self._lose(campaign, str(event.get("reason")))

    def _on_leader_changed(self, event: Message) -> None:
        campaign = self.campaigns.get(event["election"])
        if campaign:
            name = event["leader"]
            campaign.leader = None if name is None else (name, whole(event, "epoch"))
            campaign.notify("leader", campaign.leader)

    def _on_drain(self, event: Message) -> None:
        campaign = self.campaigns.get(event["election"])
        if not campaign or not campaign.leadership:
            return
        if not campaign.acts:
            self._give_up(campaign, "drained")
            self._resign(campaign)
        elif not campaign.leadership.stopping.is_set():
            campaign.leadership.stopping.set()
            campaign.notify("drain", campaign.leadership)

    def _on_stopped(self, event: Message) -> None:
        campaign = self.campaigns.get(event["election"])
        if campaign:
            self._remove(campaign, "the agent ended it")

    def _on_change(self, event: Message) -> None:
        for feed in self._feeds:
            if feed.id == event["watch"]:
                feed.notify(event)

    def _on_message(self, event: Message) -> None:
        for feed in self._feeds:
            if feed.request.get("channel") == event["channel"]:
                feed.notify(event)

    # ---- The ends of a leadership

    def _set_session(self, session: str | None) -> None:
        if self.session and session != self.session:
            for campaign in self.campaigns.values():
                campaign.owed = 0  # the session's end gave everything up
                if campaign.leadership:
                    self._lose(campaign, "the session ended")
        self.session = session

    def _expire(self, now: int) -> None:
        for campaign in self.campaigns.values():
            leadership = campaign.leadership
            if leadership and campaign.acts and leadership._end_ns <= now:
                self._give_up(campaign, "the lease is over")

    def _give_up(self, campaign: Campaign[F], reason: str) -> None:
        campaign.owed = campaign.known_epoch
        self._lose(campaign, reason)

    def _lose(self, campaign: Campaign[F], reason: str) -> None:
        leadership, campaign.leadership = campaign.leadership, None
        if leadership:
            leadership._end(reason)
            if campaign.acts:
                campaign.notify("lost", leadership)

    def _remove(self, campaign: Campaign[F], reason: str) -> None:
        if self.campaigns.get(campaign.election) is campaign:
            del self.campaigns[campaign.election]
            self._lose(campaign, reason)
            campaign.notify("stopped", reason)
            for done in campaign.left:
                done({"ok": True})
