"""Python workers of a pool: threads, asyncio, and a leader in C that comes and goes."""
import asyncio
import logging
import os
import pathlib
import queue
import subprocess
import sys
import threading
import unittest

import baton
import baton.work
from harness import DEADLINE_S, Pool, until

logging.getLogger("baton").setLevel(logging.CRITICAL)
ABOUT = {"slots": 4, "report_interval": 0.1, "leave": DEADLINE_S}


class WithPool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Pool(lifetime_ms=3000)
        cls.addClassCleanup(cls.agent.close)

    def pool(self):
        client = baton.Client(self.agent.path)
        self.addCleanup(client.close)
        return baton.work.Pool(client, "pool")


class Threads(WithPool):
    def test_items_run_and_their_results_come_in_the_order_of_the_ids(self):
        pool = self.pool()
        with pool.worker("w", lambda run: run.body + b"!", **ABOUT):
            given = pool.submit(["one", b"\xff", {"body": "three", "priority": 3}])
            results = pool.wait(given.ids, DEADLINE_S)
        self.assertEqual([result.output for result in results], [b"one!", b"\xff!", b"three!"])
        self.assertEqual([result.id for result in results], given.ids)
        self.assertEqual({result.state for result in results}, {"completed"})
        self.assertEqual(pool.result(given.ids[0]), results[0])
        self.assertIsNone(pool.result("never"))

    def test_the_next_attempt_has_the_checkpoint_and_a_higher_epoch(self):
        pool, seen = self.pool(), []

        def work(run):
            seen.append((run.attempt, run.checkpoint, run.epoch))
            run.check()
            if run.attempt == 1:
                run.progress(0.5)
                run.save("a third")
                run.save("half")
                raise RuntimeError("no more today")
        with pool.worker("w", work, **ABOUT):
            pool.submit([{"id": "twice", "retries": 1, "backoff_ms": 1}])
            self.assertEqual(pool.wait(["twice"], DEADLINE_S)[0].state, "completed")
        (one, none, first), (two, half, second) = seen
        self.assertEqual((one, none, two, half), (1, None, 2, b"half"))
        self.assertGreater(second, first)

    def test_a_first_attempt_has_no_checkpoint_of_an_earlier_item(self):
        pool, seen = self.pool(), []

        def work(run):
            seen.append(run.checkpoint)
            run.save("mine")
        with baton.Client(self.agent.path) as client:
            client.put("work/pool/k/again", b"\1\0\0\0\0\0\0\0theirs")
        with pool.worker("w", work, **ABOUT):
            pool.submit([{"id": "again"}])
            self.assertEqual(pool.wait(["again"], DEADLINE_S)[0].state, "completed")
        self.assertEqual(seen, [None])

    def test_an_exception_is_the_output_of_a_failure(self):
        pool = self.pool()

        def work(run):
            raise RuntimeError("no more today")
        with pool.worker("w", work, **ABOUT):
            result = pool.wait(pool.submit([""]).ids, DEADLINE_S)[0]
        self.assertEqual((result.state, result.output),
                         ("failed", b"RuntimeError: no more today"))

    def test_a_cancelled_item_is_stopped_and_may_act_until_it_has_ended(self):
        pool, runs = self.pool(), queue.Queue()

        def work(run):
            runs.put(run)
            run.stopping.wait()
            runs.put(run.may_act)
        with pool.worker("w", work, **ABOUT):
            pool.submit([{"id": "cancelled"}])
            run = runs.get(timeout=DEADLINE_S)
            self.assertFalse(run.should_stop)
            pool.cancel("cancelled")
            self.assertEqual(pool.wait(["cancelled"], DEADLINE_S)[0].state, "cancelled")
        self.assertTrue(runs.get(timeout=DEADLINE_S))
        self.assertRaises(baton.Lost, run.check)

    def test_a_run_that_was_told_to_stop_has_no_result_though_the_lease_was_renewed(self):
        pool, ends = self.pool(), []

        def work(run):
            def ask():
                if run.attempt == 1:
                    return run.should_stop
                with self.assertRaises(baton.Lost):
                    run.check()
                return run.should_stop
            held = run._run._leadership
            if run.attempt < 3:
                run._run._leadership = type("Lapsed", (), {"is_leader": False})
                ends.append(ask())
                run._run._leadership = held
            ends.append(run.should_stop)
            if run.attempt == 2:
                raise RuntimeError("cut off")
            return b"part" if run.attempt == 1 else b"whole"
        with pool.worker("w", work, **ABOUT):
            result = pool.wait(pool.submit([{"id": "lapsed"}]).ids, DEADLINE_S)[0]
        self.assertEqual((result.state, result.output), ("completed", b"whole"))
        self.assertEqual(ends, [True, True, True, True, False])

    def test_a_service_moves_when_its_worker_leaves(self):
        one, two, runs = self.pool(), self.pool(), queue.Queue()

        def serve(run):
            runs.put(threading.current_thread())
            run.save(b"state")
            run.stopping.wait()
            runs.put(run.checkpoint)
        with one.worker("one", serve, **ABOUT):
            one.submit([{"id": "service", "kind": "service"}])
            runs.get(timeout=DEADLINE_S)
            begun = two.worker("two", serve, **ABOUT)
            begun.__enter__()
        self.assertIsNone(runs.get(timeout=DEADLINE_S))
        runs.get(timeout=DEADLINE_S)
        two.cancel("service")
        self.assertEqual(runs.get(timeout=DEADLINE_S), b"state")
        begun.__exit__(None, None, None)

    def test_what_runs_goes_on_while_the_leader_is_replaced(self):
        pool, may_end, begun = self.pool(), threading.Event(), []

        def work(run):
            begun.append(run.epoch)
            may_end.wait()
            return "done"
        with pool.worker("w", work, **ABOUT):
            ids = pool.submit(["", ""]).ids
            until(lambda: len(begun) == 2, "both run")
            self.agent.kill_leader()
            may_end.set()
            self.agent.begin_leader()
            self.assertEqual([r.output for r in pool.wait(ids, DEADLINE_S)], [b"done"] * 2)
        self.assertEqual(len(begun), 2)

    def test_many_items_are_several_keys_and_all_run_once(self):
        pool, ran = self.pool(), queue.Queue()
        with pool.worker("w", lambda run: ran.put(run.id), **{**ABOUT, "slots": 200}):
            given = pool.submit([f"{number:01000}" for number in range(200)])
            again = baton.work.core.chunks_of("n", ["x" * 1000] * 200)
            pool.wait(given.ids, DEADLINE_S)
        self.assertGreater(len(again[1]), 1)
        self.assertEqual(len(set(given.ids)), 200)
        self.assertEqual(sorted(ran.queue), sorted(given.ids))

    def test_one_name_is_one_submission_and_wrong_items_are_refused(self):
        pool = self.pool()
        with pool.worker("w", lambda run: None, **ABOUT):
            pool.submit(["a"], "batch")
            self.assertEqual(pool.submit(["a"], "batch").ids, ["batch.0"])
            pool.wait(["batch.0"], DEADLINE_S)
        for items, code in ((["b"], "EEXIST"), ([{"retries": -1}], "EINVAL"), ([], "EINVAL"),
                            ([{"retry": 1}], "EINVAL"), ([{"id": "a//b"}], "EINVAL"),
                            ([{"body": 7}], "EINVAL"), ([{"kind": "task"}], "EINVAL"),
                            ("ab", "EINVAL"), (b"ab", "EINVAL"), ({"body": "a"}, "EINVAL"),
                            (["x" * 65537], "EINVAL"), ([{"needs": "gpu"}], "EINVAL")):
            with self.subTest(items=items), self.assertRaises(baton.BatonError) as raised:
                pool.submit(items, "batch")
            self.assertEqual(raised.exception.code, code)
        with self.assertRaisesRegex(baton.BatonError, "batch.0: must be a list"):
            pool.wait("batch.0", 1)

    def test_a_drained_worker_gets_nothing_and_all_is_told(self):
        pool, may_end = self.pool(), threading.Event()
        with pool.worker("d", lambda _: may_end.wait() and b"", **ABOUT):
            pool.submit([{"id": "first"}])
            until(lambda: self.entry(pool, "first").state == "processing", "it runs")
            self.assertEqual(self.entry(pool, "first").worker, "d")
            self.assertEqual(self.entry(pool, "first").attempt, 1)
            pool.drain("d")
            until(lambda: self.seen(pool)["draining"], "the leader knows")
            pool.submit([{"id": "second"}])
            until(lambda: self.entry(pool, "second").state == "idle", "the item is known")
            may_end.set()
            self.assertEqual(pool.wait(["first"], DEADLINE_S)[0].state, "completed")
            self.assertEqual(self.entry(pool, "second").state, "idle")
            pool.undrain("d")
            self.assertEqual(pool.wait(["second"], DEADLINE_S)[0].state, "completed")
        with self.assertRaises(baton.BatonError):
            pool.drain("a/b")
        self.agent.kill_leader()
        self.addCleanup(self.agent.begin_leader)
        self.assertRaises(TimeoutError, pool.status, 0.1)

    def entry(self, pool, item):
        return next((entry for entry in pool.items() if entry.id == item),
                    baton.work.Entry(item, "unknown", None, 0, 0, 0, 0))

    def seen(self, pool):
        return next(worker for worker in pool.status()["workers"] if worker["worker"] == "d")

    def test_a_wait_ends_with_its_time(self):
        with self.assertRaises(TimeoutError):
            self.pool().wait(["nobody-has-it"], 0.1)


class Asyncio(WithPool):
    def test_items_are_calls_of_a_coroutine_function(self):
        async def play():
            async with baton.aio.Client(self.agent.path) as client:
                pool = baton.work.aio.Pool(client, "pool")

                async def work(run):
                    await run.save(run.body)
                    return run.body.upper()
                async with pool.worker("w", work, **ABOUT):
                    given = await pool.submit(["a", "b"])
                    results = await pool.wait(given.ids, DEADLINE_S)
                self.assertEqual([result.output for result in results], [b"A", b"B"])
        asyncio.run(play())

    def test_a_run_that_is_to_stop_is_cancelled(self):
        async def play():
            async with baton.aio.Client(self.agent.path) as client:
                pool = baton.work.aio.Pool(client, "pool")
                begun, ended = asyncio.Event(), asyncio.Event()

                async def work(_):
                    begun.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        ended.set()
                async with pool.worker("w", work, **ABOUT):
                    await pool.submit([{"id": "endless"}])
                    await begun.wait()
                    await pool.cancel("endless")
                    [result] = await pool.wait(["endless"], DEADLINE_S)
                self.assertEqual(result.state, "cancelled")
                self.assertTrue(ended.is_set())
        asyncio.run(play())

    def test_what_still_runs_at_the_end_of_leaving_goes_on_elsewhere(self):
        async def play():
            async with baton.aio.Client(self.agent.path) as client:
                pool = baton.work.aio.Pool(client, "pool")
                begun = asyncio.Queue()

                async def work(run):
                    begun.put_nowait(run.attempt)
                    if run.attempt == 1:
                        await asyncio.Event().wait()
                async with pool.worker("one", work, **{**ABOUT, "leave": 0}):
                    await pool.submit([{"id": "unending"}])
                    self.assertEqual(await begun.get(), 1)
                async with pool.worker("two", work, **ABOUT):
                    self.assertEqual(await begun.get(), 2)
                    [result] = await pool.wait(["unending"], DEADLINE_S)
                self.assertEqual(result.state, "completed")
        asyncio.run(play())


class Example(unittest.TestCase):
    def start(self, agent, *words):
        path = pathlib.Path(__file__).parents[2] / "examples/clients/jobs.py"
        process = subprocess.Popen([sys.executable, "-B", path, *words], stdout=subprocess.PIPE,
                                   env={**os.environ, "BATON_AGENT": agent.path},
                                   universal_newlines=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_the_jobs_of_a_worker_that_is_killed_are_done_by_another(self):
        agent = Pool(pool="primes")
        self.addCleanup(agent.close)
        client = baton.Client(agent.path)
        self.addCleanup(client.close)
        first = self.start(agent, "one")
        until(lambda: any(one["leader"] == "one" for one in client.elections()), "a worker")
        asks = self.start(agent, "two", "40")
        until(lambda: any(b'"processing","one"' in value.data
                          for value in client.list("work/primes/b/")), "a job is at the first")
        first.kill()
        self.assertEqual(asks.communicate(timeout=2 * DEADLINE_S)[0],
                         "33860 primes below 400000\n")


if __name__ == "__main__":
    unittest.main()
