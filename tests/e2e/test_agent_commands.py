"""The commands that ask the agent of their host."""
import json
import subprocess
import tempfile
import time

from agents import LONG, MIB, AgentTest
from harness import BATON, baton, clean_environment, free_ports, main, until


class AgentCommands(AgentTest):
    """The commands that ask the agent, of a group and of a provider that lists no elections."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="baton-agent-")
        self.addCleanup(folder.cleanup)
        self.alone = ("--data", folder.name + "/data", "--listen",
                      "127.0.0.1:%d" % free_ports(1)[0])

    def agents(self):
        for provider in (self.alone, ("--provider", "memory:agent")):
            yield self.agent("--client-lease", LONG, provider=provider)

    def command(self, agent, *words, code=0, text=None):
        done = baton(*words, env={"BATON_AGENT": agent.path}, text=text)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def asked(self, agent, *words):
        return json.loads(self.command(agent, *words, "--json"))

    def start(self, agent, *words):
        """A command that goes on, and its lines."""
        process = subprocess.Popen([BATON, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, universal_newlines=True,
                                   env={**clean_environment(), "BATON_AGENT": agent.path})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_the_agent_of_the_provider_in_the_environment_is_asked_by_each_command(self):
        agent = self.agent("--client-lease", LONG, provider=self.alone)
        client = self.client(agent, name="one")
        client.lead("report")
        asked = {"BATON_PROVIDER": "agent:" + agent.path}
        for words in (("elections",), ("status", "-e", "report"), ("members", "-e", "report"),
                      ("state", "put", "k", "v"), ("state", "get", "k"), ("publish", "c", "m"),
                      ("cordon", "-e", "report", "none"), ("status",)):
            done = baton(*words, env={"BATON_AGENT": "/no/such", **asked})
            self.assertNotIn(done.returncode, (64, 69), (words, done.stderr))
        done = baton("elections", "--socket", "/no/such", env=asked)
        self.assertEqual(done.returncode, 69)
        done = baton("elections", env={"BATON_PROVIDER": "agent:here"})
        self.assertEqual(done.returncode, 64)
        self.assertIn("agent:here", done.stderr)
        for other in "redis://127.0.0.1:1", "agent:":
            done = baton("elections", env={"BATON_AGENT": agent.path, "BATON_PROVIDER": other})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_status_and_members_tell_who_leads(self):
        for agent in self.agents():
            first, second = self.client(agent, name="one"), self.client(agent, name="two")
            epoch = first.lead("report")
            self.assertTrue(second.ask("campaign", election="report")["ok"])
            status = until(lambda: (now := self.asked(agent, "status", "--election", "report"))[
                "waiting"] == 1 and now, agent.log)
            self.assertEqual((status["leader"]["name"], status["epoch"]), ("one", epoch))
            self.assertEqual((status["node"], status["election"]), ("host", "report"))
            text = self.command(agent, "status", "--election", "report")
            self.assertRegex(text, r"(?m)^leader +one$")
            members = self.asked(agent, "members", "--election", "report")
            self.assertEqual({member["name"]: member["role"] for member in members},
                             {"one": "leader", "two": "follower"})
            self.assertIn("two", self.command(agent, "members", "-e", "report"))
            self.assertEqual(self.asked(agent, "status")["processes"], 2)

    def test_a_memory_without_a_name_has_one_leader_too(self):
        agent = self.agent("--client-lease", LONG, provider=("--provider", "memory:"))
        first, second = self.client(agent, name="one"), self.client(agent, name="two")
        first.lead("report")
        self.assertTrue(second.ask("campaign", election="report")["ok"])
        until(lambda: second.ask("leader", election="report")["leader"] == "one", agent.log)
        self.assertTrue(first.ask("leave", election="report")["ok"])
        second.event("leadership-acquired")

    def test_a_watch_tells_who_leads_and_who_follows(self):
        for agent in self.agents():
            first, second = self.client(agent, name="one"), self.client(agent, name="two")
            epoch = first.lead()
            watch = self.start(agent, "watch", "--election", "e", "--json")
            event = json.loads(watch.stdout.readline())
            self.assertEqual((event["event"], event["member"], event["epoch"]),
                             ("leader-changed", "one", epoch))
            self.assertTrue(second.ask("campaign", election="e")["ok"])
            self.assertTrue(first.ask("bye")["ok"])
            while event["member"] != "two":
                event = json.loads(watch.stdout.readline())
            self.assertGreater(event["epoch"], epoch)

    def test_a_watch_outlives_many_leases_of_a_client_and_ends_with_its_time(self):
        agent = self.agent("--client-lease", "3s")
        watch = self.start(agent, "watch", "--election", "e", "--json")
        until(lambda: self.asked(agent, "status")["processes"] == 1, agent.log)
        end_ns = time.monotonic_ns() + 9 * 10**9
        until(lambda: time.monotonic_ns() > end_ns, "three leases")
        self.client(agent, name="late").lead()
        self.assertEqual(json.loads(watch.stdout.readline())["member"], "late")
        self.assertIn("the time is over", self.command(agent, "watch", "-e", "e", "--timeout",
                                                       "10ms", code=124))

    def test_leadership_is_passed_on_when_the_leader_has_drained(self):
        agent = self.agent("--client-lease", LONG, provider=self.alone)
        first, second = self.client(agent, name="one"), self.client(agent, name="two")
        epoch = first.lead()
        self.assertTrue(second.ask("campaign", election="e")["ok"])
        until(lambda: self.asked(agent, "status", "-e", "e")["waiting"] == 1, agent.log)
        self.assertIn("three", self.command(agent, "pass", "-e", "e", "--to", "three", code=64))
        self.command(agent, "cordon", "-e", "e", "two")
        self.assertIn("nobody can take over", self.command(agent, "pass", "-e", "e", code=1))
        self.command(agent, "uncordon", "-e", "e", "two")
        passing = self.start(agent, "pass", "--election", "e", "--to", "two", "--json")
        self.assertIsNotNone(first.event("drain"))
        self.assertTrue(first.ask("drained", election="e", epoch=epoch)["ok"])
        answer = json.loads(passing.stdout.readline())
        self.assertEqual(answer["name"], "two")
        self.assertGreater(answer["epoch"], epoch)

    def test_a_cordoned_process_waits_no_more_until_it_is_uncordoned(self):
        agent = self.agent("--client-lease", LONG, provider=self.alone)
        first, second = self.client(agent, name="one"), self.client(agent, name="two")
        first.lead()
        self.assertTrue(second.ask("campaign", election="e")["ok"])
        until(lambda: self.asked(agent, "status", "-e", "e")["waiting"] == 1, agent.log)
        self.command(agent, "cordon", "--election", "e", "two")
        self.assertEqual(self.asked(agent, "status", "-e", "e")["waiting"], 0)
        self.command(agent, "uncordon", "--election", "e", "two")
        self.assertEqual(self.asked(agent, "status", "-e", "e")["waiting"], 1)

    def test_state_is_put_read_listed_deleted(self):
        for agent in self.agents():
            self.command(agent, "state", "put", "a/1", "grün")
            self.command(agent, "state", "put", "a/2", text="from stdin\n")
            self.assertEqual(self.command(agent, "state", "get", "a/1"), "grün")
            self.assertEqual(self.command(agent, "state", "get", "a/2"), "from stdin\n")
            listed = self.asked(agent, "state", "list", "a/")
            self.assertEqual([value["key"] for value in listed], ["a/1", "a/2"])
            self.assertRegex(self.command(agent, "state", "list"), r"(?m)^a/1 +\d+ +grün$")
            revision = str(self.asked(agent, "state", "get", "a/1")["revision"])
            self.command(agent, "state", "put", "a/1", "x", "--revision", "0", code=1)
            self.command(agent, "state", "put", "--revision", revision, "a/1", "-", text="y")
            self.assertEqual(self.command(agent, "state", "get", "a/1"), "y")
            self.command(agent, "state", "delete", "a/1", "--revision", revision, code=1)
            after = self.asked(agent, "state", "put", "a/1", "z")
            self.assertEqual(after, {"key": "a/1", "revision": after["revision"]})
            gone = self.asked(agent, "state", "delete", "a/1", "--revision", str(after["revision"]))
            self.assertEqual(gone, {"key": "a/1", "revision": 0})
            self.command(agent, "state", "get", "a/1", code=1)
            self.command(agent, "state", "put", "a/3", text="x" * (MIB + 1), code=64)
            self.command(agent, "state", "put", "a/3", "short", "--lifetime", "50ms")
            until(lambda: [value["key"] for value in self.asked(agent, "state", "list")] == ["a/2"],
                  agent.log)

    def test_a_long_list_is_printed_whole(self):
        agent = self.agent()
        for i in range(8):
            self.command(agent, "state", "put", f"k{i}", text="x" * MIB)
        listed = self.asked(agent, "state", "list", "k")
        self.assertEqual([value["key"] for value in listed], [f"k{i}" for i in range(8)])

    def test_a_watch_of_the_state_tells_what_there_is_and_each_change(self):
        for agent in self.agents():
            self.command(agent, "state", "put", "k1", "v1")
            watch = self.start(agent, "state", "watch", "k", "--json")
            self.assertEqual(json.loads(watch.stdout.readline())["text"], "v1")
            self.command(agent, "state", "put", "other", "v")
            self.command(agent, "state", "delete", "k1")
            gone = json.loads(watch.stdout.readline())
            self.assertEqual((gone["key"], gone["nothing"]), ("k1", True))

    def test_what_is_published_is_printed_by_who_subscribes(self):
        agent = self.agent()
        reader = self.start(agent, "subscribe", "news", "--count", "2")
        until(lambda: self.command(agent, "publish", "news", text="one") == "" and
              reader.poll() is not None, "the reader has had two")
        self.assertEqual(reader.stdout.read(), "one\none\n")
        self.assertEqual(reader.returncode, 0)

    def test_a_message_reaches_who_subscribes_at_another_agent(self):
        first, second = self.group(2)
        reader = self.start(second, "subscribe", "news", "--count", "1")
        other = self.start(first, "subscribe", "news", "--count", "1", "--json")
        until(lambda: self.command(first, "publish", "news", "one") == "" and
              reader.poll() is not None and other.poll() is not None, second.log)
        self.assertEqual(reader.stdout.read(), "one\n")
        self.assertEqual(json.loads(other.stdout.read()), {"channel": "news", "text": "one"})

    def test_what_is_wrong_is_said_with_the_way_out(self):
        agent = self.agent(provider=self.alone)
        for words, code, said in (
                (("status", "--election", "none"), 1, "baton elections"),
                (("members",), 64, "--election is missing"),
                (("watch",), 64, "--election is missing"),
                (("pass",), 64, "--election is missing"),
                (("pass", "--election", "none"), 1, "none"),
                (("agent",), 64, "for the state of this node\n"),
                (("cordon", "--election", "e"), 64, "baton members --election e"),
                (("cordon", "--data", "/nowhere", "p"), 64, "--election"),
                (("status", "--data", "/nowhere"), 69, "is the node running"),
                (("state", "get"), 64, "get takes KEY"),
                (("state", "fly", "k"), 64, "get, put, delete, list or watch"),
                (("state", "get", "none"), 1, "none"),
                (("status", "-e", "e", "--timeout", "0"), 64, "--timeout 0")):
            self.assertIn(said, self.command(agent, *words, code=code), words)
        done = baton("status", "--election", "e", "--socket", "/tmp/baton-no-such-agent.sock")
        self.assertEqual(done.returncode, 69)
        self.assertIn("baton agent", done.stderr)


if __name__ == "__main__":
    main()
