"""A network of the test's own: a namespace for each node, and a bridge in one between them.

Rules of nftables at a node's input say whom it does not hear. Everything goes with the test.
"""
import itertools
import os
import shutil
import subprocess

from faults import WatchedCluster, skip

NETWORK = "10.77.%d.%d"
RULES = """
table inet cut
delete table inet cut
table inet cut {
    chain in {
        type filter hook input priority 0;
        %s
    }
}
"""
count = itertools.count()


def run(*words, text=None):
    done = subprocess.run(words, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    if done.returncode != 0:
        raise OSError("%s: %s" % (" ".join(words), done.stdout.strip()))
    return done.stdout


class Network:
    def __init__(self, names):
        self.number = next(count)
        self.prefix = "baton%d-%d-" % (os.getpid(), self.number)
        self.hosts = {name: NETWORK % (self.number, i + 1) for i, name in enumerate(names)}
        self.made = []
        self.cuts = []  # (who, whom they do not hear)
        self.loss = {}  # by name: how many packets in a hundred do not arrive
        if not shutil.which("ip") or not shutil.which("nft"):
            skip("ip or nft is not installed")
        try:
            hub = self.add("hub")
            run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
            run("ip", "netns", "exec", hub, "nft", "-f", "-", text=RULES % "")
        except OSError as error:
            self.close()
            skip("no network of its own: %s" % error)
        try:
            self.build(hub)
        except OSError:
            self.close()
            raise

    def space(self, name):
        return self.prefix + name

    def build(self, hub):
        run("ip", "-n", hub, "link", "set", "bridge", "up")
        for name in self.hosts:
            self.add(name)
            self.attach(name)

    def attach(self, name):
        """Gives the namespace its line to the bridge."""
        hub, space = self.space("hub"), self.space(name)
        run("ip", "-n", hub, "link", "add", "to-" + name, "type", "veth",
            "peer", "name", "eth0", "netns", space)
        run("ip", "-n", hub, "link", "set", "to-" + name, "master", "bridge", "up")
        run("ip", "-n", space, "address", "add", self.hosts[name] + "/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            run("ip", "-n", space, "link", "set", device, "up")
        self.obey(name)

    def detach(self, name):
        """Takes the line away, with all connections over it."""
        run("ip", "-n", self.space("hub"), "link", "del", "to-" + name)

    def remake(self, name):
        """Another namespace in place of one that is detached and in which no process is left."""
        run("ip", "netns", "del", self.space(name))
        run("ip", "netns", "add", self.space(name))
        self.attach(name)
        # A host that comes up announces its link address. The others would send to the earlier one
        # for up to 45 s otherwise.
        for other in set(self.hosts) - {name}:
            run("ip", "-n", self.space(other), "neigh", "flush", "to", self.hosts[name])

    def add(self, name):
        run("ip", "netns", "add", self.space(name))
        self.made.append(self.space(name))
        return self.space(name)

    def obey(self, name):
        """The rules anew, all at once. What is dropped is dropped in silence, as on a cut line."""
        deaf = {one for some, others in self.cuts if name in some for one in others} - {name}
        rules = ["ip saddr %s drop" % self.hosts[one] for one in sorted(deaf)]
        if self.loss.get(name):
            rules.append("iif eth0 numgen random mod 100 < %d drop" % self.loss[name])
        run("ip", "netns", "exec", self.space(name), "nft", "-f", "-",
            text=RULES % "\n".join(rules))

    def deafen(self, names, against):
        """One way: they no longer hear those others. It is undone by mend() with what it gives."""
        cut = (list(names), list(against))
        self.cuts.append(cut)
        for name in names:
            self.obey(name)
        return cut

    def part(self, some, others):
        """Both ways."""
        return self.deafen(some, others), self.deafen(others, some)

    def mend(self, *cuts):
        for cut in cuts:
            self.cuts.remove(cut)
            for name in cut[0]:
                self.obey(name)

    def lose(self, name, percent):
        """Of the packets to it, at random; 0: none."""
        self.loss[name] = percent
        self.obey(name)

    def heal(self):
        self.cuts, self.loss = [], {}
        for name in self.hosts:
            self.obey(name)

    def close(self):
        for space in self.made:
            subprocess.run(["ip", "netns", "del", space], check=False)


class NetworkedCluster(WatchedCluster):
    """Nodes on a network of their own, with a shared key, as off loopback they must have one."""

    def __init__(self, size, *flags, **more):
        super().__init__(size, *flags, **more)
        self.network = Network(self.names)
        self.hosts = self.network.hosts
        key = os.path.join(self.dir, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(os.urandom(32).hex() + "\n")
        self.flags += ["--key-file", key]

    def start(self, name, *more, env=None, under=()):
        super().start(name, *more, env=env,
                      under=("ip", "netns", "exec", self.network.space(name), *under))

    def close(self):
        super().close()
        self.network.close()
