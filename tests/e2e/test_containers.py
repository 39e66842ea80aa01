"""The command lines of packaging/kubernetes, run in containers that may do nothing: a root that
cannot be written, a user that is not root, no capability, no new privileges, and a filter of system
calls (containers.py). What they promise holds there too: above all, no CAP_SYS_PTRACE is needed."""
import base64
import json
import os
import signal
import unittest

import containers
import manifests
from containers import Container, Hosts, container_of, pod_of
from harness import DEADLINE_S, baton, main, until

# Instead of the preset of the manifest: only a proof ends a lease before the test does.
LEASE = ["--heartbeat-interval=100ms", "--heartbeat-timeout=90s", "--lease=90s", "--log-level=info"]


def fresh_key():
    return base64.b64encode(os.urandom(32)).decode()


class Contained(unittest.TestCase):
    def hosts(self, *names):
        hosts = Hosts(names)
        self.addCleanup(hosts.close)
        return hosts

    def assert_bare(self, pid, user):
        """The kernel's own account of what the process may do."""
        status = containers.status_of(pid)
        for name in containers.BARE:
            self.assertEqual(int(status[name][0], 16), 0, name)
        self.assertEqual(status["NoNewPrivs"], ["1"])
        self.assertEqual(status["Seccomp"], ["2"])
        self.assertEqual(set(status["Uid"]), {str(user)})


@unittest.skipUnless(containers.may_contain(), "containers need root, unshare(1) and libseccomp")
class StatefulSet(Contained):
    def begin(self, *more, script=None):
        pod = pod_of("statefulset.yaml")
        spec = container_of(pod)
        at = spec["args"].index("--")
        spec["args"][at:at] = more
        spec["args"] = [word for word in spec["args"] if not (more and "--preset" in word)]
        spec["args"][-1] = script or spec["args"][-1]
        names = ["%s-%d" % (pod.name, i) for i in range(pod.workload["spec"]["replicas"])]
        hosts = self.hosts(*names)
        self.known = {"%s.%s" % (name, pod.workload["spec"]["serviceName"]): name
                      for name in names}
        secrets = {"cluster.key": fresh_key(), "http.token": fresh_key()}
        members = {name: Container(hosts, name, pod, spec, secrets) for name in names}
        for member in members.values():
            member.start(self.known)
        return members

    def status(self, member):
        done = baton("status", "--json", "--timeout", "5s", "--data",
                     member.path("/var/lib/baton/data"))
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def leader(self, members):
        def leads():
            return next((name for name, one in members.items()
                         if self.status(one).get("is_leader")), None)
        return until(leads, lambda: "a leader:\n" + "\n".join(
            one.log() for one in members.values()))

    def wait_for_followers(self, members, leader):
        for one in members.values():
            until(lambda one=one: self.status(one).get("leader", {}).get("id") == leader, one.log)

    def test_a_killed_elector_is_followed_by_its_guardians_certificate(self):
        members = self.begin(*LEASE)
        old = self.leader(members)
        self.wait_for_followers(members, old)
        elector = members[old].elector()
        self.assert_bare(elector, 65532)
        self.assert_bare(members[old].first(), 65532)
        os.kill(elector, signal.SIGKILL)
        others = {name: one for name, one in members.items() if name != old}
        new = self.leader(others)
        self.assertRegex(others[new].log(), "leader-proved-gone .*guardian")
        self.assertEqual(members[old].process.wait(timeout=DEADLINE_S), 137)

    def test_nothing_in_it_may_trace_mount_or_write(self):
        """Shows that the container is as bare as the other tests say."""
        members = self.begin(script="strace true || echo no-trace; unshare --user true || echo "
                             "no-namespace; touch /x || echo no-write; echo done; sleep 1000")
        leader = members[self.leader(members)]
        until(lambda: "done" in leader.log(), leader.log)
        for word in ("no-trace", "no-namespace", "no-write"):
            self.assertIn(word, leader.log())

    def test_as_it_stands_it_elects_and_its_probes_answer(self):
        members = self.begin()
        leader = self.leader(members)
        until(lambda: "leads in epoch" in members[leader].log(), members[leader].log)
        for member in members.values():
            for name in ("startupProbe", "readinessProbe", "livenessProbe"):
                until(lambda member=member, name=name: '"ok":true' in (member.answers(name) or ""),
                      member.log)

    def test_a_stopped_pod_hands_over_and_comes_back_with_its_volume(self):
        members = self.begin()
        old = self.leader(members)
        self.wait_for_followers(members, old)
        os.kill(members[old].first(), signal.SIGTERM)
        self.assertEqual(members[old].process.wait(timeout=DEADLINE_S), 128 + 15)  # CMD's
        new = self.leader({name: one for name, one in members.items() if name != old})
        members[old].start(self.known)
        until(lambda: self.status(members[old]).get("leader", {}).get("id") == new,
              members[old].log)


@unittest.skipUnless(containers.may_contain(), "containers need root, unshare(1) and libseccomp")
class Agents(Contained):
    """agent-daemonset.yaml on three hosts, and pods of deployment.yaml on the first."""

    def agents(self, *more):
        pod = pod_of("agent-daemonset.yaml")
        spec = container_of(pod)
        spec["args"] += more
        peers = dict(value.rpartition(":")[0].split("=") for name, value in pod.settings(spec)
                     if name == "peer")
        self.inside = self.hosts(*peers)
        for name, address in peers.items():
            self.inside.add_address(name, address)
        secrets = {"cluster.key": fresh_key()}
        agents = {name: Container(self.inside, name, pod, spec, secrets, name="agent-" + name)
                  for name in peers}
        for agent in agents.values():
            agent.start()
        return agents

    def pod(self, name, host):
        pod = pod_of("deployment.yaml")
        one = Container(self.inside, host, pod, container_of(pod), {}, name=name)
        one.start()
        return one

    def test_a_pod_leads_by_the_agent_of_its_host_and_is_followed_when_it_is_killed(self):
        """The agent is of another user, sees no process of the pod, and has no capability. Nobody
        waits for the lease that it gives."""
        agents = self.agents("--client-lease=10m")
        first = self.pod("nightly-1", "host-a")
        until(lambda: "leads in epoch" in first.log(), lambda: first.log() + "".join(
            agent.log() for agent in agents.values()))
        for agent in agents.values():
            self.assert_bare(agent.first(), 65532)
            until(lambda agent=agent: agent.answers("startupProbe"), agent.log)
            self.assertIn("host-", agent.probe("livenessProbe"))
        self.assert_bare(first.first(), 1000)
        second = self.pod("nightly-2", "host-b")
        first.kill()
        until(lambda: "leads in epoch" in second.log(), second.log)


@unittest.skipUnless(containers.may_contain(), "containers need root, unshare(1) and libseccomp")
class Sidecar(Contained):
    """sidecar.yaml: of each pod the container of the agent, and that of the program."""

    def begin(self):
        pod = pod_of("sidecar.yaml")
        of_agent, of_program = container_of(pod, "agent"), container_of(pod, "billing")
        of_agent["args"].append("--client-lease=10m")
        names = ["%s-%d" % (pod.name, i) for i in range(pod.workload["spec"]["replicas"])]
        hosts = self.hosts(*names)
        known = {"%s.%s" % (name, pod.name): name for name in names}
        secrets = {"cluster.key": fresh_key()}
        self.agents = [Container(hosts, name, pod, of_agent, secrets) for name in names]
        for agent in self.agents:
            agent.start(known)
        for agent in self.agents:
            until(lambda agent=agent: agent.answers("startupProbe"), agent.log)
        programs = [Container(hosts, name, pod, of_program, {}) for name in names]
        for program in programs:
            program.start()
        return programs

    def leader(self, programs):
        return until(lambda: next((one for one in programs if "leads in epoch" in one.log()), None),
                     lambda: "".join(one.log() for one in programs + self.agents))

    def test_the_end_of_the_programs_container_is_proved_by_the_agent_beside_it(self):
        programs = self.begin()
        first = self.leader(programs)
        self.assert_bare(first.first(), 65532)
        first.kill()
        programs.remove(first)
        second = self.leader(programs)
        os.kill(second.elector(), signal.SIGKILL)
        programs.remove(second)
        self.leader(programs)


@unittest.skipUnless(containers.may_contain(), "containers need root, unshare(1) and libseccomp")
@unittest.skipUnless(manifests.is_built("baton-fleet"), "baton-fleet is not built")
class Fleet(Contained):
    """fleet.yaml, without workers."""

    def test_as_it_stands_it_elects_a_master_and_its_probes_answer(self):
        pod = pod_of("fleet.yaml")
        names = ["%s-%d" % (pod.name, i) for i in range(pod.workload["spec"]["replicas"])]
        hosts = self.hosts(*names)
        known = {"%s.%s" % (name, pod.name): name for name in names}
        secrets = {"cluster.key": fresh_key(), "change.token": fresh_key()}
        members = [Container(hosts, name, pod, container_of(pod), secrets) for name in names]
        members[0].start(known)
        # Alone it has no quorum: it is alive, and not ready.
        until(lambda: members[0].answers("startupProbe"), members[0].log)
        self.assertIn('"ok":true', members[0].probe("livenessProbe"))
        self.assertIsNone(members[0].answers("readinessProbe"))
        for member in members[1:]:
            member.start(known)
        for member in members:
            until(lambda member=member: member.answers("readinessProbe"), member.log)
            self.assert_bare(member.first(), 65532)
        self.assertIn("leader-changed", "".join(member.log() for member in members))


if __name__ == "__main__":
    main()
