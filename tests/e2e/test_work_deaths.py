"""A pool whose workers, leaders, supervisors and agents are killed and stopped: what runs never
runs twice at once, and all that was submitted is completed."""
import os
import signal
import subprocess

from harness import DEADLINE_S, free_ports, is_alive, main, until
from pools import PoolTest


class Bag(PoolTest):
    """Three workers, of which any may lead."""

    def kill_while_a_bag_runs(self):
        first = self.worker("one")
        until(lambda: "pool-ready" in first.log(), first.log)
        workers = {"one": first, **{name: self.worker(name) for name in ("two", "three")}}
        ids = self.submit_actors("bag", 40, 0.1)
        for name in ("one", "two", "three", "one"):
            self.await_attempts(4, ids)
            workers[name].kill()
            workers[name] = self.worker(name)
        self.await_all(ids)
        self.assert_never_twice_at_once()


class Workers(Bag):
    def test_what_a_killed_worker_ran_runs_elsewhere_without_waiting_for_its_lease(self):
        self.on_agent()
        _, two = self.workers("one", "two")
        self.work("drain", "one")
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        self.work("submit", "--id", "service", "--service", "--", *self.actor(1000))
        first = {item: self.await_acting(item) for item in ("job", "service")}
        self.work("undrain", "one")
        two.kill()
        for item, attempt in first.items():
            self.await_acting(item, attempt.last)
            self.assertFalse(is_alive(attempt.pid))
        self.assert_never_twice_at_once()

    def job_on_two(self):
        """Starts two workers with a short lease, and on the second one a job."""
        self.on_agent(lease="3s")
        _, two = self.workers("one", "two")
        self.work("drain", "one")
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        first = self.await_acting("job")
        self.work("undrain", "one")
        return two, first

    def test_what_a_stopped_worker_ran_is_dead_before_it_runs_elsewhere(self):
        two, first = self.job_on_two()
        two.signal(signal.SIGSTOP)
        self.await_acting("job", self.last_of(first))
        two.signal(signal.SIGCONT)
        until(lambda: two.log().count("worker-session ") >= 2, two.log)
        self.end_actors()
        self.await_state("job", "completed")
        self.assertEqual(len(self.attempts("job")), 2)
        self.assert_never_twice_at_once()

    def test_what_ran_is_dead_before_it_runs_elsewhere_though_the_supervisor_is_stopped_too(self):
        two, first = self.job_on_two()
        supervisor = two.supervisor()
        two.signal(signal.SIGSTOP)
        os.kill(supervisor, signal.SIGSTOP)
        try:
            self.await_acting("job", self.last_of(first))
        finally:
            os.kill(supervisor, signal.SIGCONT)
            two.signal(signal.SIGCONT)
        until(lambda: two.log().count("worker-session ") >= 2, two.log)
        self.end_actors()
        self.await_state("job", "completed")
        self.assert_never_twice_at_once()

    def last_of(self, attempt):
        """When it acted last, once it is dead."""
        until(lambda: not is_alive(attempt.pid), "it is dead")
        return next(one.last for one in self.attempts() if one.pid == attempt.pid)

    def test_a_worker_whose_supervisor_is_killed_ends_what_it_ran(self):
        two, first = self.job_on_two()
        os.kill(two.supervisor(), signal.SIGKILL)
        self.assertNotEqual(two.process.wait(DEADLINE_S), 0)
        self.await_acting("job", self.last_of(first))
        self.assert_never_twice_at_once()

    def test_a_worker_that_leaves_without_a_leader_says_what_may_run_again(self):
        self.on_agent()
        one = self.workers("one")[0]
        two = self.worker("two", "--never-lead", "--drain-timeout", "1s")
        self.await_online("one", "two")
        self.work("drain", "one")
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        acts = self.await_acting("job")
        one.signal(signal.SIGSTOP)
        self.end_actors()
        until(lambda: not is_alive(acts.pid), "it has ended")
        two.signal(signal.SIGTERM)
        self.assertEqual(two.process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        self.assertIn("results-unconfirmed items=1", two.log())

    def test_an_idle_worker_whose_supervisor_is_killed_ends(self):
        self.on_agent()
        one = self.workers("one")[0]
        os.kill(one.supervisor(), signal.SIGKILL)
        self.assertEqual(one.process.wait(DEADLINE_S), 1)

    def test_a_worker_that_is_started_again_at_once_works_again(self):
        self.on_agent(lease="3s")
        one = self.workers("one")[0]
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        acts = self.await_acting("job")
        for _ in range(2):
            os.kill(one.supervisor(), signal.SIGKILL)  # so that the agent has no proof of the end
            one.process.wait(DEADLINE_S)
            one = self.worker("one")
            acts = self.await_acting("job", self.last_of(acts))
        self.end_actors()
        self.await_state("job", "completed")
        self.assert_never_twice_at_once()

    def test_a_bag_is_completed_while_its_leader_and_its_workers_are_killed(self):
        self.on_agent(lease="3s")
        self.kill_while_a_bag_runs()


class Redis(Bag):
    def test_a_bag_is_completed_while_its_leader_and_its_workers_are_killed(self):
        port = free_ports(1)[0]
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
             self.folder.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.provider = "redis://127.0.0.1:%d?lease=1s&max-lease=1s&heartbeat-interval=100ms" % port
        until(lambda: self.run_work("ls").returncode == 0, "an answer of redis-server")
        self.kill_while_a_bag_runs()


class Group(PoolTest):
    def test_a_bag_is_completed_while_the_agents_of_a_group_are_killed_one_by_one(self):
        agents = self.group(3)
        self.provider = "agent:" + agents[0].path
        workers = [self.worker("w%d" % i, provider="agent:" + agent.path)
                   for i, agent in enumerate(agents)]
        until(lambda: any("pool-ready" in worker.log() for worker in workers), "somebody leads")
        ids = self.submit_actors("bag", 40, 0.1)
        for agent in agents:
            self.await_attempts(4, ids)
            agent.kill()
            agent.start()
            until(lambda: self.run_work("ls").returncode == 0, agent.log)
        self.await_all(ids)
        self.assert_never_twice_at_once()


if __name__ == "__main__":
    main()
