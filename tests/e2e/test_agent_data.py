"""State and channels of `baton agent`: long lists and values, clients that do not read theirs."""
import base64
import json

from agents import LONG, MIB, AgentTest, Client
from harness import main, until


class Data(AgentTest):
    def test_state_and_channels(self):
        agent = self.agent()
        writer, reader = self.client(agent), self.client(agent)
        raw = base64.b64encode(b"\xff\x00\xfe").decode()
        self.assertEqual(reader.ask("get", key="a")["code"], "ENOENT")
        self.assertTrue(reader.ask("watch", prefix="a")["ok"])
        self.assertTrue(writer.ask("put", key="a", text="ä", revision=0)["ok"])
        self.assertEqual(writer.ask("put", key="a", text="b", revision=0)["code"], "ECONFLICT")
        self.assertTrue(writer.ask("put", key="ab", base64=raw)["ok"])
        values = {v["key"]: v for v in reader.ask("list", prefix="")["values"]}
        self.assertEqual(values["a"]["text"], "ä")
        self.assertEqual(values["ab"]["base64"], raw)
        seen = set()
        while seen != {"a", "ab"}:
            seen |= {v["key"] for v in reader.event("change")["values"]}
        self.assertTrue(writer.ask("put", key="a", nothing=True)["ok"])
        self.assertEqual(reader.ask("get", key="a")["code"], "ENOENT")
        self.assertTrue(reader.ask("subscribe", channel="news")["ok"])
        self.assertTrue(writer.ask("publish", channel="news", base64=raw)["ok"])
        self.assertEqual(reader.event("message")["base64"], raw)
        self.assertTrue(reader.ask("unsubscribe", channel="news")["ok"])
        self.assertEqual(reader.ask("unsubscribe", channel="news")["code"], "ENOENT")

    def test_a_long_value_passes_as_it_is_to_a_client_that_reads_it_so_and_to_others_in_json(self):
        agent = self.agent()
        text = 1000 * '"ä\n'
        raw, plain = Client(agent.path), self.client(agent)
        self.addCleanup(raw.close)
        self.assertTrue(raw.hello(name="raw", reads_raw=True)["reads_raw"])
        line = {"id": 2, "do": "put", "key": "k", "raw": len(text.encode())}
        raw.send(json.dumps(line).encode() + b"\n" + text.encode())
        self.assertTrue(self.reply_to(raw, 2)["ok"])
        self.assertEqual(plain.ask("get", key="k")["values"][0]["text"], text)
        raw.send(b'{"id": 3, "do": "get", "key": "k"}\n')
        value = self.reply_to(raw, 3)["values"][0]
        self.assertNotIn("text", value)
        self.assertEqual(raw.lines.read(value["raw"]).decode(), text)

    @staticmethod
    def reply_to(client, number):
        while (message := client.read()).get("id") != number:
            client.events.append(message)
        return message

    @staticmethod
    def asked_list(number):
        return b'{"id": %d, "do": "list", "prefix": "k"}\n' % number

    def whole_list(self, client, count):
        """Reads list 1 to its end; returns the replies."""
        replies, keys = [], []
        while not replies or replies[-1]["id"] != 1 or replies[-1].get("more"):
            message = client.read()
            if "id" in message:
                replies.append(message)
                keys += [value["key"] for value in message.get("values", ())]
        self.assertEqual(keys, [f"k{i:02}" for i in range(count)])
        return replies

    def test_a_long_list_comes_in_parts_between_which_other_replies_pass(self):
        agent = self.agent("--client-lease", LONG)
        writer, reader = self.client(agent), self.client(agent)
        for i in range(20):
            self.assertTrue(writer.ask("put", key=f"k{i:02}", text="x" * MIB)["ok"])
        reader.send(self.asked_list(1) + b'{"id": 2, "do": "renew"}\n')
        replies = self.whole_list(reader, 20)
        self.assertEqual(replies[1]["id"], 2)
        self.assertTrue(all(reply["ok"] for reply in replies))
        self.assertNotIn("more", reader.ask("list", prefix="k00"))

    def test_a_list_has_a_limit_and_so_have_all_that_are_not_read(self):
        agent = self.agent("--client-lease", LONG)
        clients = [self.client(agent) for _ in range(4)]
        for i in range(40):
            self.assertTrue(clients[0].ask("put", key=f"k{i:02}", text="x" * MIB)["ok"])
        for client in clients:
            client.send(self.asked_list(1) + (self.asked_list(2) if client is clients[0] else b""))
            other = Client(agent.path)  # when it is answered, the list was asked for
            self.addCleanup(other.close)
            self.assertTrue(other.ask("status")["ok"])
        refused = [[reply["code"] for reply in self.whole_list(client, 40) if not reply["ok"]]
                   for client in clients[:3]]
        self.assertEqual(refused, [["EBUSY"], [], []])  # it had asked for 40 MiB before
        self.assertEqual(self.reply_to(clients[3], 1)["code"], "EBUSY")  # the others: for 120
        clients[3].send(self.asked_list(1))
        self.whole_list(clients[3], 40)
        for i in range(24):
            self.assertTrue(clients[0].ask("put", key=f"l{i:02}", text="x" * MIB)["ok"])
        self.assertEqual(clients[0].ask("list", prefix="")["code"], "ETOOBIG")

    def test_a_watch_begins_with_any_number_of_values_and_changes_wait_behind_them(self):
        agent = self.agent("--client-lease", LONG)
        writer, reader = self.client(agent), self.client(agent)
        for i in range(20):
            self.assertTrue(writer.ask("put", key=f"k{i:02}", text="x" * MIB)["ok"])
        reader.send(b'{"id": 1, "do": "watch", "prefix": "k"}\n{"id": 2, "do": "renew"}\n')
        self.reply_to(reader, 2)
        self.assertTrue(writer.ask("put", key="k05", text="new")["ok"])
        self.assertTrue(writer.ask("put", key="k06", nothing=True)["ok"])
        values = []
        while not values or "nothing" not in values[-1]:
            event = reader.event("change")
            values += event["values"]
        self.assertNotIn("more", event)
        self.assertEqual([value["key"] for value in values],
                         [*(f"k{i:02}" for i in range(20)), "k05", "k06"])
        self.assertEqual(values[20]["text"], "new")

    def test_a_watch_that_ends_within_its_first_values_sends_no_more(self):
        agent = self.agent("--client-lease", LONG)
        writer, reader = self.client(agent), self.client(agent)
        for i in range(20):
            self.assertTrue(writer.ask("put", key=f"k{i:02}", text="x" * MIB)["ok"])
        reader.send(b'{"id": 1, "do": "watch", "prefix": "k"}\n')
        self.assertTrue(reader.event("change")["more"])
        reader.send(b'{"id": 2, "do": "unwatch", "watch": 1}\n')
        self.assertTrue(self.reply_to(reader, 2)["ok"])
        reader.events.clear()
        self.assertTrue(reader.ask("status")["ok"])
        self.assertEqual(reader.events, [])

    def test_who_does_not_read_its_list_is_closed_and_the_others_go_on(self):
        agent = self.agent("--client-lease", "10s")  # in which the other one reads 20 MiB
        deaf, other = Client(agent.path), Client(agent.path)
        self.addCleanup(deaf.close)
        self.addCleanup(other.close)
        for i in range(20):
            self.assertTrue(other.ask("put", key=f"k{i:02}", text="x" * MIB)["ok"])
        deaf.send(self.asked_list(1))
        until(lambda: "does not read what it listed" in agent.log(), agent.log)
        self.assertTrue(deaf.is_closed())
        other.send(self.asked_list(1))
        self.whole_list(other, 20)

    def test_who_does_not_read_is_closed_and_the_others_go_on(self):
        agent = self.agent("--client-lease", LONG)
        deaf, writer = self.client(agent), self.client(agent)
        self.assertTrue(deaf.ask("watch", prefix="flood")["ok"])
        for _ in range(16):
            self.assertTrue(writer.ask("put", key="flood", text="x" * MIB)["ok"])
        self.assertTrue(deaf.is_closed())
        self.assertTrue(writer.ask("renew")["ok"])

    def test_a_subscriber_that_reads_too_slowly_misses_messages_and_nothing_else(self):
        agent = self.agent("--client-lease", LONG)
        slow, writer = self.client(agent), self.client(agent)
        slow.lead()
        self.assertTrue(slow.ask("subscribe", channel="flood")["ok"])
        for _ in range(16):
            self.assertTrue(writer.ask("publish", channel="flood", text="x" * MIB)["ok"])
        self.assertGreater(slow.ask("renew")["left_ms"], 0)
        heard = sum(event["event"] == "message" for event in slow.events)
        self.assertTrue(0 < heard < 16, heard)
        self.assertEqual(writer.ask("status")["messages_dropped"], 16 - heard)
        self.assertTrue(writer.ask("publish", channel="flood", text="last")["ok"])
        while slow.event("message").get("text") != "last":
            pass


if __name__ == "__main__":
    main()
