"""A worker of a pool, and what a pool stores, without I/O (docs/work-protocol.md).

               the leader's messages ─┐               ┌─▶ start, halt    for who runs the items
    session of the worker's election ─┼──▶ Worker ────┼─▶ messages       for the leader
                     ended, progress ─┘               └
"""
from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import BatonError, Message

OUTPUT_MAX = 16 * 1024  # bytes of a result's output
BODY_MAX = 65536
CHECKPOINT_MAX = 120 * 1024
CHUNK_MAX = 120 * 1024  # bytes of a key with items
CHUNK_ITEMS_MAX = 1000
REPLY_MAX = 450 * 1024  # bytes of items in the reply to a leader that has lost the ledger
BUCKETS = 64
NAME = re.compile(r"[A-Za-z0-9_.:-]+")
POOL_MAX = 32
WORKER_MAX = 55
SUBMISSION_MAX = 40
ID = re.compile(r"(?!/)(?!.*//)[A-Za-z0-9_.:/{};@+=,-]{1,127}(?<!/)")
STATES = ("completed", "failed", "cancelled")  # those that are final

# Of an item: the least and the most.
NUMBERS = {"priority": (-2**31, 2**31 - 1), "weight": (1, 1000000), "retries": (0, 1000),
           "gpus": (0, 1000), "memory_mib": (0, 2**30), "backoff_ms": (0, 31622400000),
           "timeout_ms": (0, 31622400000)}
TEXTS = ("id", "together")
LISTS = ("needs", "keys")


@dataclass(frozen=True)
class Result:
    """How an item ended. Without a result (it was cancelled, or the result is no longer kept)
    `epoch` is 0."""

    id: str
    state: str  # "completed", "failed", "cancelled"
    output: bytes = b""
    code: int = 0
    epoch: int = 0
    began_unix_ms: int = 0
    ended_unix_ms: int = 0


@dataclass(frozen=True)
class Submission:
    """What was submitted: the ids are in the order of the items."""

    name: str
    ids: list[str]


@dataclass(frozen=True)
class Entry:
    """An item as the ledger has it: "idle", "processing", "completed", "failed" or "cancelled"."""

    id: str
    state: str
    worker: str | None  # that has it
    epoch: int
    attempt: int  # 0: none has begun
    failures: int
    since_unix_ms: int


Item = Mapping[str, Any] | str | bytes


# ---- Bytes in JSON

def bytes_member(key: str, data: bytes | str) -> Message:
    """As text where it is one, else as base64."""
    raw = data.encode() if isinstance(data, str) else data
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # many readers refuse it
        return {key + "_base64": base64.b64encode(raw).decode()}
    return {key: text} if text else {}


def bytes_of(message: Message, key: str) -> bytes:
    if key + "_base64" in message:
        return base64.b64decode(message[key + "_base64"], validate=True)
    return str(message.get(key, "")).encode()


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ---- Submissions

def refuse(text: str) -> BatonError:
    return BatonError("EINVAL", text)


def check_name(what: str, name: str, most: int) -> None:
    if not NAME.fullmatch(name) or len(name) > most or name == "all":
        raise refuse(f"{what} {name!r}: must have 1 to {most} letters, digits and characters of "
                     "-_.: and not be \"all\"")


def check_member(place: str, key: str, value: Any) -> None:
    if key in NUMBERS:
        least, most = NUMBERS[key]
        if type(value) is not int or not least <= value <= most:
            raise refuse(f"{place}.{key} is {value!r}: must be a whole number, {least} to {most}")
    elif key in TEXTS:
        if not isinstance(value, str) or not ID.fullmatch(value):
            raise refuse(f"{place}.{key} is {value!r}: must be 1 to 127 characters of an id")
    elif key in LISTS:
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise refuse(f"{place}.{key} is {value!r}: must be a list of texts")
    elif key == "kind":
        if value not in ("job", "service"):
            raise refuse(f"{place}.kind is {value!r}: must be job or service")
    else:
        raise refuse(f"{place}.{key}: an item has no such member")


def item_json(at: int, item: Item) -> Message:
    place = f"items[{at}]"
    members = dict(item) if isinstance(item, Mapping) else {"body": item}
    body = members.pop("body", b"")
    if not isinstance(body, str | bytes):
        raise refuse(f"{place}.body is {body!r}: must be a text or bytes")
    if len(body.encode() if isinstance(body, str) else body) > BODY_MAX:
        raise refuse(f"{place}.body has more than {BODY_MAX} bytes")
    for key, value in members.items():
        check_member(place, key, value)
    return {**members, **bytes_member("body", body)}


def check_list(what: str, items: object) -> None:
    """A text is a sequence, too: of its letters."""
    if isinstance(items, (str, bytes, bytearray, dict)):
        raise refuse(f"{what}: must be a list")


def chunks_of(name: str | None, items: Sequence[Item]) -> tuple[Submission, list[tuple[str, str]]]:
    """The names and values of the keys that hold the items, and the items' ids."""
    check_list("items", items)
    if name is not None:
        check_name("submission", name, SUBMISSION_MAX)
    submission = Submission(name or secrets.token_hex(8), [])
    chunks: list[list[str]] = []
    used = CHUNK_MAX
    for at, item in enumerate(items):
        message = item_json(at, item)
        text = dumps(message)
        if used + len(text.encode()) > CHUNK_MAX or len(chunks[-1]) == CHUNK_ITEMS_MAX:
            chunks.append([])
            used = 64
        submission.ids.append(message.get("id") or
                              f"{chunk_name(submission, len(chunks))}.{len(chunks[-1])}")
        chunks[-1].append(text)
        used += len(text.encode()) + 1
    if not chunks:
        raise refuse("a submission has at least one item")
    unique = dumps(name is None)
    return submission, [(chunk_name(submission, number + 1),
                         f'{{"unique":{unique},"items":[{",".join(chunk)}]}}')
                        for number, chunk in enumerate(chunks)]


def chunk_name(submission: Submission, number: int) -> str:
    return submission.name if number == 1 else f"{submission.name}-{number - 1}"


# ---- What the leader stores

def result_of(data: bytes) -> Result:
    message = json.loads(data)
    return Result(message["id"], "completed" if message["success"] else "failed",
                  bytes_of(message, "output"), message["code"], message["epoch"],
                  message["began_unix_ms"], message["ended_unix_ms"])


def bucket_of(item: str) -> int:
    number = 14695981039346656037
    for byte in item.encode():
        number = (number ^ byte) * 1099511628211 % 2**64
    number ^= number >> 32
    return (number ^ number >> 16) % BUCKETS


def entries_of(bucket: bytes) -> Iterator[Entry]:
    for row in json.loads(bucket)["items"]:  # a later leader may write more of each
        item, state, worker, _, epoch, attempt, failures, _, _, since, *_ = row
        yield Entry(item, state, worker or None, epoch, attempt, failures, since)


def checkpoint(epoch: int, data: bytes) -> bytes:
    return epoch.to_bytes(8, "little") + data


def checkpoint_of(value: bytes | None) -> tuple[int, bytes | None]:
    """Its epoch and data; a value that is too short is none."""
    if value is None or len(value) < 8:
        return 0, None
    return int.from_bytes(value[:8], "little"), value[8:]


# ---- The worker

@dataclass
class Placing:
    item: Message
    epoch: int
    attempt: int


RUNNING, HALTING, ENDED, GONE = range(4)


class Held:
    """An item that is here: it runs, is to end, or its end (with a result, or without one: GONE)
    waits for the leader's ack."""

    def __init__(self, placing: Placing, session: int) -> None:
        self.id: str = placing.item["id"]
        self.begin(placing, session)

    def begin(self, placing: Placing, session: int) -> None:
        self.now = placing
        self.then: Placing | None = None  # starts when this one has ended
        self.session = session
        self.state = RUNNING
        self.is_started = False
        self.progress_permille = 0
        self.result: Message | None = None


class Worker:
    """The state machine: after each call, carry out orders() and send messages()."""

    def __init__(self, name: str, *, slots: int = 1, gpus: int = 0, memory_mib: int = 0,
                 labels: Sequence[str] = ()) -> None:
        check_name("worker", name, WORKER_MAX)
        self._about = {"worker": name, "slots": slots, "gpus": gpus, "memory_mib": memory_mib,
                       "labels": list(labels)}
        self._name = name
        self._held: dict[str, Held] = {}
        self._orders: dict[Held, None] = {}  # a queue
        self._unsent: dict[Held, None] = {}
        self._session = 0
        self._ledger = 0
        self._seen = (0, 0)
        self._is_leaving = self._is_report_due = self._is_asked = False

    @property
    def is_idle(self) -> bool:
        """Nothing runs here, and the leader has all results."""
        return all(held.state == GONE for held in self._held.values())

    def session(self, session: int) -> None:
        """It has this session now, 0: none. Everything of an earlier one is to be stopped."""
        if session == self._session:
            return
        self._session = session
        for held in list(self._held.values()):
            held.then = None
            self._halt(held)
            if held.state == GONE and session and held.session != session:
                self._forget(held)
        self._is_asked = False
        self._is_report_due = session != 0

    def hear(self, data: bytes) -> None:
        """A message of the leader; what is none is ignored."""
        try:
            message = json.loads(data)
            number = (int(message["leader"]), int(message["number"]))
            session = message.get("session", 0)
            is_ask = message["type"] == "ask"
            if (self._session and (session == self._session or is_ask and session == 0)
                    and number > self._seen):
                self._seen = number
                self._take(message)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
                ValueError):
            pass  # what it had to say is said again

    def ended(self, held: Held, epoch: int, result: Message | None) -> None:
        """The run has ended, and nothing of it acts any more. None: before its work was done."""
        if (held.now.epoch != epoch or held.state in (ENDED, GONE)
                or self._held.get(held.id) is not held):
            return
        if held.state == HALTING or result is None:
            self._gone(held)
        else:
            held.state = ENDED
            held.result = {"id": held.id, "epoch": epoch, **result}
            self._unsent[held] = None

    def leave(self) -> None:
        """It takes nothing new, and what it has is to move."""
        self._is_leaving = True
        self._is_report_due = self._session != 0

    def tick(self) -> None:
        """Once in each report interval."""
        if self._session:
            self._is_report_due = True
            self._send_results()

    def orders(self) -> Iterator[Held]:
        """Those to start (RUNNING), each with a run of its own, or to halt (HALTING)."""
        while self._orders:
            held = next(iter(self._orders))
            del self._orders[held]
            held.is_started = True
            yield held

    def messages(self) -> Iterator[str]:
        while self._session and self._unsent:
            held = next(iter(self._unsent))
            del self._unsent[held]
            yield dumps({"type": "done", "worker": self._name, "session": held.session,
                         "result": held.result})
        if self._session and self._is_report_due:
            self._is_report_due = False
            yield dumps(self._report())
            self._is_asked = False

    # ---- What the leader says

    def _take(self, message: Message) -> None:
        self._ledger = message.get("ledger", 0) or self._ledger
        if message["type"] == "ask":
            self._send_results()
            self._is_asked = not message.get("ledger")
            self._is_report_due = True
            return
        take = {"assign": self._assign, "stop": self._stop, "ack": self._acknowledged}
        for entry in message["items"]:
            take[message["type"]](entry)

    def _assign(self, entry: Message) -> None:
        placing = Placing(entry["item"], int(entry["epoch"]), int(entry["attempt"]))
        held = self._held.get(placing.item["id"])
        if not held:
            held = self._held[placing.item["id"]] = Held(placing, self._session)
            self._orders[held] = None
        elif placing.epoch <= held.now.epoch and held.session == self._session:
            if held.state == ENDED and placing.epoch == held.now.epoch:
                self._unsent[held] = None
            elif held.state == GONE:
                self._is_report_due = True  # it never starts again
        elif held.state in (ENDED, GONE):
            self._begin(held, placing)
        else:
            held.then = placing
            self._halt(held)

    def _stop(self, entry: Message) -> None:
        held = self._held.get(entry["id"])
        if not held or held.state == GONE:
            self._is_report_due = True  # it is not here: that is the reply
            return
        if held.then and held.then.epoch <= entry["epoch"]:
            held.then = None
        if held.now.epoch <= entry["epoch"]:
            self._halt(held)

    def _acknowledged(self, entry: Message) -> None:
        held = self._held.get(entry["id"])
        if held and held.state in (ENDED, GONE) and held.now.epoch <= entry["epoch"]:
            self._forget(held)

    # ---- What runs

    def _begin(self, held: Held, placing: Placing) -> None:
        held.begin(placing, self._session)
        self._unsent.pop(held, None)
        self._orders[held] = None

    def _halt(self, held: Held) -> None:
        if held.state == RUNNING and not held.is_started:
            self._gone(held)
        elif held.state == RUNNING:
            held.state = HALTING
            self._orders[held] = None

    def _gone(self, held: Held) -> None:
        if held.then:
            self._begin(held, held.then)
        elif held.is_started and self._session in (0, held.session):
            held.state = GONE
        else:
            self._forget(held)
        self._is_report_due = self._session != 0

    def _forget(self, held: Held) -> None:
        del self._held[held.id]
        self._orders.pop(held, None)
        self._unsent.pop(held, None)

    # ---- What is sent

    def _send_results(self) -> None:
        self._unsent.update({held: None for held in self._held.values() if held.state == ENDED})

    def _report(self) -> Message:
        claims, used = [], 0
        for held in self._held.values():
            placing = held.then or held.now
            if held.then or held.session == self._session:
                used += len(dumps(placing.item)) if self._is_asked else 0
                claims.append({
                    "id": held.id, "epoch": placing.epoch,
                    "ended": held.state == ENDED, "gone": held.state == GONE,
                    "progress_permille": 0 if held.then else held.progress_permille,
                    **({"item": placing.item} if self._is_asked and used < REPLY_MAX else {})})
        return {"type": "report", **self._about, "session": self._session,
                "ledger": self._ledger, "leaving": self._is_leaving, "reply": self._is_asked,
                "seen": {"leader": self._seen[0], "number": self._seen[1]}, "claims": claims}
