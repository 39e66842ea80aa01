"""Hosts given by name, and name services that answer late or not at all."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import BATON, Cluster, ClusterTest, clean_environment, free_ports, main, until

# A host with a name service of its own, which knows every name to be 127.0.0.1. argv: resolv.conf,
# nsswitch.conf, after how many seconds it answers, and a port at which 127.0.0.1 does not: then it
# names 127.0.0.2, too.
HOST = r"""
import fcntl, socket, struct, subprocess, sys, threading
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(server, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up
server.bind(("127.0.0.1", 53))
for source, target in zip(sys.argv[1:], ("/etc/resolv.conf", "/etc/nsswitch.conf")):
    subprocess.run(["mount", "--bind", source, target], check=True)
deaf = []
if len(sys.argv) > 4:  # its queue is full
    deaf = [socket.socket() for _ in range(4)]
    deaf[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deaf[0].bind(("127.0.0.1", int(sys.argv[4])))
    deaf[0].listen(0)
    for one in deaf[1:]:
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", int(sys.argv[4])))
print("ready", flush=True)

def answer(question, asker):
    end = question.index(b"\0", 12) + 5
    is_ipv4 = question[end - 4:end - 2] == b"\0\1"
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0"
    records = [record + b"\1", record + b"\2"][:1 + bool(deaf)] if is_ipv4 else []
    head = question[:2] + b"\x81\x80\0\1\0" + bytes([len(records)]) + bytes(4)
    server.sendto(head + question[12:end] + b"".join(records), asker)

while True:
    threading.Timer(float(sys.argv[3]), answer, server.recvfrom(2048)).start()
"""


class NamedCluster(Cluster):
    """Nodes that know each other by name."""

    def __init__(self, count, there):
        super().__init__(count, "--insecure")
        self.there = there
        self.hosts = {name: name + ".example" for name in self.names}

    def arguments(self, name):
        words = super().arguments(name)
        words[words.index("--listen") + 1] = "0.0.0.0:%d" % self.ports[name]
        return words + ["--peer", "%s=%s" % (name, self.address(name))]

    def start(self, name, *more, env=None, under=()):
        super().start(name, *more, env=env, under=[*self.there, *under])


class Names(ClusterTest):
    def host(self, late=0.0, deaf=()):
        """Returns its name service, and the words that start a program there."""
        folder = tempfile.mkdtemp(prefix="baton-e2e-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        files = [os.path.join(folder, name) for name in ("resolv.conf", "nsswitch.conf")]
        for path, text in zip(files, ("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n",
                                      "hosts: files dns\n")):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        service = subprocess.Popen(["unshare", "--mount", "--net", "--propagation", "private",
                                    sys.executable, "-c", HOST, *files, str(late),
                                    *map(str, deaf)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(service.stdout.close)
        self.addCleanup(service.wait)
        self.addCleanup(service.kill)
        if service.stdout.readline() != b"ready\n":
            self.skipTest("no host of our own: that needs root")
        return service, ["nsenter", "--target", str(service.pid), "--mount", "--net"]

    def expect_timeout(self, *command):
        service, there = self.host()
        service.send_signal(signal.SIGSTOP)
        done = subprocess.run([*there, BATON, *command, "--timeout", "300ms"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=clean_environment(), timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout), (124, ""), done.stderr)
        self.assertIn("nowhere.example", done.stderr)

    def test_a_name_service_that_does_not_answer_costs_no_more_than_the_timeout(self):
        self.expect_timeout("status", "--http", "nowhere.example:80")
        self.expect_timeout("fleet", "status", "--fleet", "http://nowhere.example")

    def test_a_look_up_that_takes_longer_than_answers_of_redis_may_is_awaited(self):
        """As with two name servers of which the first is gone."""
        port = free_ports(1)[0]
        self.lead_by_redis(port, self.host(late=1.5)[1], "127.0.0.1")

    def test_a_name_of_which_one_address_does_not_answer_is_reached_by_another(self):
        port = free_ports(1)[0]
        self.lead_by_redis(port, self.host(deaf=[port])[1], "127.0.0.2")

    def lead_by_redis(self, port, there, address):
        if not shutil.which("redis-server"):
            self.skipTest("redis-server is not installed")
        server = subprocess.Popen([*there, "redis-server", "--bind", address, "--port", str(port),
                                   "--save", ""],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        cluster = self.cluster(0)
        cluster.processes["a"] = subprocess.Popen(
            [*there, BATON, "node", "--node", "a", "--data", cluster.data("a"), "--provider",
             "redis://redis.example:%d?answer-timeout=300ms&lease=1s&max-lease=1s" % port],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=clean_environment())
        cluster.wait_leader(["a"])

    def test_who_comes_back_while_no_name_is_found_is_reached_where_it_was(self):
        service, there = self.host()
        cluster = NamedCluster(3, there)
        self.addCleanup(cluster.close)
        cluster.start_all()
        leader = cluster.wait_leader()
        returns = next(name for name in cluster.names if name != leader)
        until(lambda: (cluster.status(returns) or {"leader": {"id": ""}})["leader"]["id"] == leader,
              "all are there")
        service.send_signal(signal.SIGSTOP)
        cluster.kill(returns)
        cluster.start(returns)
        until(lambda: (cluster.status(returns) or {"leader": {"id": ""}})["leader"]["id"] == leader,
              lambda: "it follows; " + cluster.log(returns))

    def test_a_node_that_is_to_end_waits_for_no_name_service(self):
        service, there = self.host()
        service.send_signal(signal.SIGSTOP)
        cluster = NamedCluster(3, there)
        self.addCleanup(cluster.close)
        cluster.start("a")
        until(lambda: cluster.status("a"), lambda: "it runs; " + cluster.log("a"))
        cluster.processes["a"].send_signal(signal.SIGTERM)
        until(lambda: cluster.processes["a"].poll() is not None,
              lambda: "it ends; " + cluster.log("a"))
        self.assertEqual(cluster.processes["a"].returncode, 0)


if __name__ == "__main__":
    main()
