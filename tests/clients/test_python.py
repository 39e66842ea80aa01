"""The Python client and an agent: threads, asyncio, forks, and agents that go away."""
import asyncio
import logging
import os
import queue
import signal
import socket
import tempfile
import threading
import unittest
from unittest import mock

import baton
from harness import DEADLINE_S, SHORT_MS, Agent, until

logging.getLogger("baton").setLevel(logging.CRITICAL)


class WithAgent(unittest.TestCase):
    def setUp(self):
        self.agent = self.start_agent()

    def start_agent(self, **options):
        agent = Agent(**options)
        self.addCleanup(agent.close)
        return agent

    def client(self, **options):
        client = baton.Client(self.agent.path, **options)
        self.addCleanup(client.close)
        return client


class Threads(WithAgent):
    def test_the_with_block_begins_when_this_process_leads_and_its_end_hands_on(self):
        second = self.client().campaign("report")
        first = second.wait(DEADLINE_S)
        with self.assertRaises(TimeoutError):
            with baton.lead("report", path=self.agent.path, timeout=0.2):
                self.fail("two lead")
        second.leave()
        self.assertFalse(first.is_leader)
        with baton.lead("report", path=self.agent.path) as leadership:
            self.assertTrue(leadership.is_leader)
            self.assertGreater(leadership.epoch, first.epoch)
            leadership.check()
        self.assertTrue(leadership.lost.is_set())
        self.assertRaises(baton.Lost, leadership.check)

    def test_an_exception_in_the_block_hands_on_too(self):
        with self.assertRaises(ZeroDivisionError):
            with baton.lead("report", path=self.agent.path):
                raise ZeroDivisionError
        self.client().campaign("report").wait(DEADLINE_S)

    def test_leadership_outlives_the_agent(self):
        with baton.lead("report", path=self.agent.path) as leadership:
            for _ in range(3):
                self.agent.kill()
                self.agent.start()
                end = leadership._end_ns
                until(lambda: leadership._end_ns > end, "a renewal at the next agent")
            self.assertTrue(leadership.is_leader)

    def test_leadership_ends_with_its_lease(self):
        agent = self.start_agent(lifetime_ms=SHORT_MS)
        with baton.lead("report", path=agent.path) as leadership:
            agent.kill()
            self.assertTrue(leadership.lost.wait(DEADLINE_S))
            self.assertFalse(leadership.is_leader)

    def test_an_agent_that_hangs_costs_the_leadership_and_no_more(self):
        agent = self.start_agent(lifetime_ms=SHORT_MS)
        client = baton.Client(agent.path)
        self.addCleanup(client.close)
        part = client.campaign("report")
        leadership = part.wait(DEADLINE_S)
        agent.process.send_signal(signal.SIGSTOP)
        self.assertTrue(leadership.lost.wait(DEADLINE_S))
        agent.process.send_signal(signal.SIGCONT)
        self.assertGreater(part.wait(DEADLINE_S).epoch, leadership.epoch)

    def test_callbacks_come_in_order_and_the_end_of_on_drain_hands_over(self):
        said = queue.Queue()
        first, second = self.client(name="one"), self.client(name="two")
        part = first.campaign("report", on_acquired=lambda term: said.put(("acquired", term.epoch)),
                              on_drain=lambda term: said.put(("drain", term.is_leader)),
                              on_lost=lambda term: said.put(("lost", term.is_leader)))
        epoch = part.wait(DEADLINE_S).epoch
        other = second.campaign("report")
        second.run(second._agent._request(do="pass", election="report"))
        self.assertGreater(other.wait(DEADLINE_S).epoch, epoch)
        self.assertEqual([said.get(timeout=DEADLINE_S) for _ in range(3)],
                         [("acquired", epoch), ("drain", True), ("lost", False)])

    def test_leadership_stays_where_a_drain_failed(self):
        client, said = self.client(), threading.Event()

        def drain(_):
            said.set()
            raise RuntimeError("cannot stop the work")
        part = client.campaign("report", on_drain=drain)
        leadership = part.wait(DEADLINE_S)
        client.run(client._agent._request(do="pass", election="report"))
        self.assertTrue(said.wait(DEADLINE_S))
        client.put("a", "b")  # whatever the drain might have sent is answered before
        self.assertTrue(leadership.is_leader)

    def test_a_callback_may_block_and_call_the_client(self):
        client, entered = self.client(), threading.Event()

        def work(term):
            client.put("done", str(term.epoch))
            entered.set()
        client.campaign("report", on_acquired=work)
        self.assertTrue(entered.wait(DEADLINE_S))
        self.assertIsNotNone(client.get("done"))

    def test_resigning_hands_over_and_contends_again(self):
        part = self.client().campaign("report")
        epoch = part.wait(DEADLINE_S).epoch
        part.resign()
        self.assertGreater(part.wait(DEADLINE_S).epoch, epoch)
        part.leave()
        with self.assertRaises(baton.BatonError):
            part.wait(DEADLINE_S)

    def test_members_elections_state_and_channels(self):
        client, said = self.client(name="web-1"), queue.Queue()
        client.campaign("report").wait(DEADLINE_S)
        self.assertEqual([m["name"] for m in client.members("report")], ["web-1"])
        self.assertEqual([e["leader"] for e in client.elections()], ["web-1"])
        client.set_metadata({"port": 80})
        revision = client.put("a/1", b"\0\xff", revision=0)
        self.assertEqual(client.get("a/1").revision, revision)
        with self.assertRaises(baton.BatonError) as raised:
            client.put("a/1", "x", revision=0)
        self.assertEqual(raised.exception.code, "ECONFLICT")
        feed = client.watch("a/", said.put)
        self.assertEqual([v.data for v in said.get(timeout=DEADLINE_S)], [b"\0\xff"])
        client.put("a/2", "text")
        self.assertEqual(said.get(timeout=DEADLINE_S)[0].data, b"text")
        self.assertEqual([v.key for v in client.list("a/")], ["a/1", "a/2"])
        client.unsubscribe(feed)
        revision = client.put("a/1", "y", revision=revision)
        self.assertEqual(client.put("a/1", None, revision=revision), 0)
        self.assertIsNone(client.get("a/1"))
        client.subscribe("news", said.put)
        client.publish("news", "caf\u00e9")
        self.assertEqual(said.get(timeout=DEADLINE_S), "caf\u00e9".encode())

    def test_a_child_leads_nothing_and_leaves_the_parents_leadership_alone(self):
        client = self.client()
        with client.lead("report") as leadership:
            for child_ends in (os._exit, exit_as_usual):
                child = os.fork()
                if child == 0:
                    leads = leadership.is_leader
                    try:
                        client.put("a", "b")
                        leads = True
                    except baton.BatonError:
                        client.close()
                    child_ends(int(leads))
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            client.put("a", "c")  # the loop of the parent still wakes
            end = leadership._end_ns
            until(lambda: leadership._end_ns > end, "a renewal after the fork")

    def test_an_agent_that_is_not_there_at_first_is_an_error(self):
        self.agent.kill()
        with self.assertRaises(OSError):
            baton.Client(self.agent.path)
        with self.assertRaisesRegex(FileNotFoundError, "`baton agent`.*/nowhere/agent.sock"):
            baton.Client("/nowhere/agent.sock")
        with self.assertRaisesRegex(OSError, "too long.*/nowhere/xxx"):
            baton.Client("/nowhere/" + "x" * 200)

    def test_the_users_own_agent_is_found(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.dict(os.environ, {"BATON_AGENT": "", "XDG_RUNTIME_DIR": folder}), \
                mock.patch("os.geteuid", lambda: 1000):
            with self.assertRaisesRegex(OSError, "'/run/baton/agent.sock'"):
                baton.Client()
            os.mkdir(folder + "/baton")
            os.symlink(self.agent.path, folder + "/baton/agent.sock")
            baton.Client().close()


def exit_as_usual(code):
    """With what an interpreter does at its end, though not unittest's."""
    import gc
    gc.collect()
    threading._shutdown()
    os._exit(code)


class Garbage(unittest.TestCase):
    def test_a_server_that_is_no_agent_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
            path = os.path.join(folder, "s")
            server.bind(path)
            server.listen()

            def serve():
                for words in (b"HTTP/1.1 400 no\r\n\r\n", b'{"id":1,"ok":false,"code":"EAUTH",'
                              b'"error":"uid 7 may not"}\n', b""):
                    connection = server.accept()[0]
                    connection.recv(4096)
                    connection.sendall(words)
                    connection.close()
            thread = threading.Thread(target=serve)
            thread.start()
            for code in ("EPROTO", "EAUTH", "EUNAVAILABLE"):
                with self.assertRaises(baton.BatonError) as raised:
                    baton.Client(path)
                self.assertEqual(raised.exception.code, code)
            thread.join()


class Asyncio(WithAgent):
    def test_the_block_begins_when_this_process_leads_and_its_end_hands_on(self):
        async def play():
            async with baton.aio.lead("report", path=self.agent.path) as leadership:
                self.assertTrue(leadership.is_leader)
                async with baton.aio.Client(self.agent.path) as other:
                    with self.assertRaises(TimeoutError):
                        async with asyncio.timeout(0.2), other.lead("report"):
                            self.fail("two lead")
            self.assertTrue(leadership.lost.is_set())
            async with baton.aio.lead("report", path=self.agent.path) as later:
                self.assertGreater(later.epoch, leadership.epoch)
        asyncio.run(play())

    def test_leadership_outlives_the_agent(self):
        async def play():
            async with baton.aio.lead("report", path=self.agent.path) as leadership:
                self.agent.kill()
                self.agent.start()
                end = leadership._end_ns
                while leadership._end_ns <= end:
                    await asyncio.sleep(0.01)
                self.assertTrue(leadership.is_leader)
        asyncio.run(play())

    def test_leadership_ends_with_its_lease(self):
        async def play():
            agent = self.start_agent(lifetime_ms=SHORT_MS)
            async with baton.aio.lead("report", path=agent.path) as leadership:
                agent.kill()
                async with asyncio.timeout(DEADLINE_S):
                    await leadership.lost.wait()
                self.assertFalse(leadership.is_leader)
        asyncio.run(play())

    def test_on_drain_may_be_a_coroutine(self):
        async def play():
            async with (baton.aio.Client(self.agent.path) as client,
                        baton.aio.Client(self.agent.path) as other):
                stops = asyncio.Event()

                async def drain(_):
                    stops.set()
                    await asyncio.sleep(0)
                part = await client.campaign("report", on_drain=drain)
                epoch = (await part.wait()).epoch
                heir = await other.campaign("report")
                await other._request(do="pass", election="report")
                async with asyncio.timeout(DEADLINE_S):
                    self.assertGreater((await heir.wait()).epoch, epoch)
                self.assertTrue(stops.is_set())
        asyncio.run(play())

    def test_messages_and_changes_arrive(self):
        async def play():
            async with baton.aio.Client(self.agent.path) as client:
                said = asyncio.Queue()
                await client.subscribe("news", said.put)
                await client.publish("news", b"\xff")
                await client.watch("a/", said.put_nowait)
                await client.put("a/1", "one", lifetime=60)
                async with asyncio.timeout(DEADLINE_S):
                    self.assertEqual(await said.get(), b"\xff")
                    self.assertEqual(await said.get(), [])
                    self.assertEqual([v.data for v in await said.get()], [b"one"])
        asyncio.run(play())


if __name__ == "__main__":
    unittest.main()
