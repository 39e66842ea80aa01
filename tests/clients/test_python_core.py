"""The Python client's state machine plays conversations.txt; what only Python has comes after."""
import json
import os
import pathlib
import re
import threading
import unittest

from baton import core
from baton.work import core as work

HERE = pathlib.Path(__file__).parent
BUCKETS = [17, 34, 50, 3]  # as src/work/ledger_bucket.c has them
MS = 1000000
LEADS = """campaign {0}
connect
reply hello {{"ok":true,"version":1,"lifetime_ms":3000,"renew_ms":500}}
says {{"event":"session","session":"17"}}
reply renew {{"ok":true,"left_ms":0}}
reply campaign {{"ok":true}}
says {{"event":"leadership-acquired","election":"{0}","epoch":{1}}}
reply renew {{"ok":true,"left_ms":2900}}"""


class Play:
    """A machine, and the lines of a conversation, each by the method of its first word."""

    def __init__(self, test):
        self.test = test
        self.now = 1000 * MS
        self.machine = core.Machine({"version": 1, "secret": "5e"}, lambda: self.now,
                                    threading.Event)
        self.sent, self.open, self.ids = [], [], {}  # unseen; without a reply; the last by kind
        self.heard, self.campaigns, self.feeds = [], {}, []
        self.last = None
        self.ended = None

    def line(self, line):
        word, _, rest = line.partition(" ")
        try:
            getattr(self, "on_" + word.replace("-", "_"))(rest)
        except core.BatonError as error:
            self.last = error.code
        self.collect()

    def collect(self):
        for text in bytes(self.machine.output).splitlines():
            message = json.loads(text)
            self.sent.append(message)
            self.open.append(message)
            self.ids[message["do"]] = message["id"]
        self.machine.output.clear()

    def notify(self, name, value):
        epoch = getattr(value, "epoch", None)
        self.heard += [name] if epoch is None else [name, str(epoch)]

    def done(self, reply):
        self.last = "ok" if reply["ok"] else reply["code"]
        self.keys = [value["key"] for value in reply.get("values", ())]

    def on_lead(self, rest):
        for line in LEADS.format(*rest.split()).splitlines():
            self.line(line)
        self.sent, self.heard = [], []

    def on_connect(self, _):
        self.open = []
        self.machine.connected()

    def on_disconnect(self, rest):
        self.test.assertAlmostEqual(self.machine.disconnected() * 1000, float(rest))

    def on_clock(self, rest):
        self.now += int(rest) * MS

    def on_tick(self, _):
        self.machine.tick()

    def on_wake(self, rest):
        self.test.assertEqual(self.machine.wake_at(), self.now + int(rest) * MS)

    def on_campaign(self, rest):
        campaign = core.Campaign(rest, self.notify, self.done)
        self.machine.campaign(campaign)
        self.campaigns[rest] = campaign

    def on_leave(self, rest):
        self.machine.leave(self.campaigns[rest], self.done)

    def on_resign(self, rest):
        election, _, request = rest.partition(" ")
        self.machine.resign(self.campaigns[election], self.done, json.loads(request))

    def on_request(self, rest):
        self.asked = self.done
        self.machine.request(json.loads(rest), self.asked)

    def on_forget(self, _):
        self.machine.forget(self.asked)

    def on_watch(self, rest):
        self.feed({"do": "watch", "prefix": rest})

    def on_subscribe(self, rest):
        self.feed({"do": "subscribe", "channel": rest})

    def feed(self, request):
        self.feeds.append(core.Feed(request, lambda event: self.heard.append(event["event"]), None))
        self.machine.feed(self.feeds[-1])

    def on_end_feed(self, rest):
        self.machine.end_feed(self.feeds[int(rest)])

    def on_close(self, _):
        self.machine.close()

    def filled(self, text):
        return re.sub(r"\$(\w+)", lambda match: str(self.ids[match[1]]), text)

    def on_says(self, rest):
        self.machine.received(self.filled(rest).encode() + b"\n")

    def on_fails(self, rest):
        code, _, text = rest.partition(" ")
        with self.test.assertRaises(core.BatonError) as raised:
            self.on_says(text)
        self.test.assertEqual(raised.exception.code, code)

    def on_reply(self, rest):
        do, _, text = rest.partition(" ")
        request = next(message for message in self.open if message["do"] == do)
        self.open.remove(request)
        self.machine.received(json.dumps({"id": request["id"], **json.loads(text)}).encode()
                              + b"\n")

    def on_sends(self, rest):
        decoder, expected, rest = json.JSONDecoder(), [], self.filled(rest)
        while rest:
            message, end = decoder.raw_decode(rest)
            expected.append(message)
            rest = rest[end:].lstrip()
        self.test.assertEqual([m["do"] for m in self.sent], [m["do"] for m in expected])
        for message, members in zip(self.sent, expected):
            self.test.assertEqual({name: message.get(name) for name in members}, members)
        self.sent = []

    def on_hears(self, rest):
        self.test.assertEqual(self.heard, rest.split())
        self.heard = []

    def on_acts(self, rest):
        election, left = rest.split()
        leadership = self.campaigns[election].leadership
        acts = bool(leadership and leadership.is_leader)
        self.test.assertEqual(str(leadership.remaining_ns // MS) if acts else "no", left)

    def on_result(self, rest):
        self.test.assertEqual(self.last, rest)

    def on_gets(self, rest):
        self.test.assertEqual(self.keys, rest.split())


class WorkPlay:
    """A worker, and the lines of a conversation."""

    def __init__(self, test):
        self.test = test
        self.worker = work.Worker("w", slots=2, labels=["gpu"])
        self.held = {}
        self.comes = []

    def play(self, lines):
        for line in lines:
            word, _, rest = line.partition(" ")
            if word in ("starts", "halts", "says"):
                self.test.assertTrue(self.comes, f"nothing comes: {line}")
                self.expect(self.comes.pop(0), (word, json.loads(rest) if word == "says" else rest))
            elif word == "idle":
                self.test.assertEqual(self.worker.is_idle, rest == "yes")
            else:
                self.test.assertEqual(self.comes, [], f"before: {line}")
                self.do(word, rest)
        self.test.assertEqual(self.comes, [])

    def expect(self, comes, wanted):
        if wanted[0] == "says" and comes[0] == "says":
            self.test.assertEqual(had(comes[1], wanted[1]), wanted[1])
        else:
            self.test.assertEqual(comes, wanted)

    def do(self, word, rest):
        if word == "session":
            self.worker.session(int(rest))
        elif word == "hear":
            self.worker.hear(rest.encode())
        elif word in ("end", "fail", "lose"):
            held, epoch = self.held[rest]
            self.worker.ended(held, epoch, None if word == "lose" else {"success": word == "end"})
        else:
            getattr(self.worker, word)()
        for held in self.worker.orders():
            self.held[held.id] = held, held.now.epoch
            self.comes.append(("starts" if held.state == work.RUNNING else "halts",
                               f"{held.id} {held.now.epoch}"))
        self.comes += [("says", json.loads(message)) for message in self.worker.messages()]


def had(value, wanted):
    """`value` with the members alone that are wanted."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        return {key: had(value[key], wanted[key]) for key in wanted if key in value}
    if isinstance(wanted, list) and isinstance(value, list) and len(value) == len(wanted):
        return [had(*pair) for pair in zip(value, wanted)]
    return value


class Conversations(unittest.TestCase):
    def test_all(self):
        text = HERE.joinpath("conversations.txt").read_text(encoding="utf-8")
        for number, part in enumerate(text.split("\n== ")[1:]):
            name, *lines = part.splitlines()
            with self.subTest(name):
                play = Play(self)
                for line in filter(None, lines):
                    try:
                        play.line(line)
                    except AssertionError as error:
                        raise AssertionError(f"{number}, {line}: {error}") from None


class Alone(unittest.TestCase):
    def test_thousands_of_grants_cost_few_renewals_and_requests_keep_to_their_limit(self):
        play = Play(self)
        for i in range(3000):
            play.line(f"campaign {i}")
        play.line("connect")
        play.line('reply hello {"ok":true,"version":1,"lifetime_ms":3000,"renew_ms":500}')
        while play.open:
            self.assertLessEqual(len(play.open), core.SENT_MAX + core.RENEWS_MAX)
            play.line(f'reply {play.open[0]["do"]} {{"ok":true,"left_ms":0}}')
        for i in range(3000):
            play.line(f'says {{"event":"leadership-acquired","election":"{i}","epoch":{i + 1}}}')
        self.assertLessEqual(len(play.open), core.RENEWS_MAX)
        while play.open:
            play.line('reply renew {"ok":true,"left_ms":2900}')
        self.assertEqual(play.heard.count("acquired"), 3000)

    def test_resigning_stops_acting_before_a_byte_of_it_is_written(self):
        play = Play(self)
        play.line("lead report 1234")
        campaign, acted = play.campaigns["report"], []
        leadership, send = campaign.leadership, play.machine._send
        play.machine._send = lambda *request: (acted.append(leadership.is_leader), send(*request))
        play.line('resign report {"do":"resign","epoch":1234}')
        self.assertEqual(acted, [False])
        self.assertRaises(core.Lost, leadership.check)
        self.assertTrue(leadership.lost.is_set() and leadership.stopping.is_set())

    def test_bytes_arrive_in_any_pieces_but_not_without_an_end(self):
        play = Play(self)
        play.line("campaign report")
        for byte in ('{"event":"leader-changed","election":"report","leader":"w\u00e9b",'
                     '"epoch":1}\n').encode():
            play.machine.received(bytes([byte]))
        self.assertEqual(play.campaigns["report"].leader, ("w\u00e9b", 1))
        for flood in (b"[" * 100000 + b"\n", b"\xff\n", b"x" * (3 << 20)):
            play.line("connect")
            with self.assertRaises(core.BatonError):
                play.machine.received(flood)
            play.machine.disconnected()

    def test_a_reply_has_so_many_parts_and_no_more(self):
        play = Play(self)
        play.line("connect")
        play.line('reply hello {"ok":true,"version":1,"lifetime_ms":3000,"renew_ms":500}')
        play.line('request {"do":"list","prefix":""}')
        for _ in range(core.PARTS_MAX):
            play.line('says {"id":$list,"ok":true,"values":[],"more":true}')
        play.line('fails EPROTO {"id":$list,"ok":true,"values":[],"more":true}')

    def test_a_forked_child_leads_nothing(self):
        play = Play(self)
        play.line("lead report 1234")
        leadership = play.campaigns["report"].leadership
        child = os.fork()
        if child == 0:
            os._exit(leadership.is_leader or leadership.remaining_ns > 0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(leadership.is_leader)

    def test_a_worker_plays_the_conversations_of_work(self):
        text = HERE.joinpath("work_conversations.txt").read_text(encoding="utf-8")
        for conversation in text.split("\n== ")[1:]:
            title, *lines = conversation.splitlines()
            with self.subTest(title):
                WorkPlay(self).play([line for line in lines if line])

    def test_buckets_and_chunks_are_those_of_the_leader(self):
        self.assertEqual([work.bucket_of(item) for item in ("", "a", "batch.0", "n-1.17")],
                         BUCKETS)
        given, chunks = work.chunks_of("n", ["x" * 61500, {"id": "own"}, "x" * 61501, ""])
        self.assertEqual(given.ids, ["n.0", "own", "n-1.0", "n-1.1"])
        self.assertEqual([name for name, _ in chunks], ["n", "n-1"])
        self.assertTrue(chunks[1][1].startswith('{"unique":false,"items":[{"body":"x'))
        self.assertEqual(work.checkpoint_of(work.checkpoint(258, b"x")), (258, b"x"))
        self.assertEqual(work.checkpoint(258, b"x"), b"\2\1\0\0\0\0\0\0x")
        self.assertEqual(work.checkpoint_of(b"short"), (0, None))

    def test_the_page_of_the_clients_has_python_that_compiles(self):
        page = HERE.parents[1] / "docs/clients.md"
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        self.assertGreater(len(blocks), 2)
        for block in blocks:
            compile(block, str(page), "exec")


if __name__ == "__main__":
    unittest.main()
