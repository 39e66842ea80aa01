"""README's lines for three machines with systemd, to the letter: three hosts, each with a network
namespace and with an /etc, a /var/lib and a /usr/local of its own."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

import containers
from containers import Hosts
from harness import BATON, baton, is_alive, main, until

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NEXT_TO_IT = "On each of three machines with systemd"
SELF = "self=a=10.0.0.1:7400 peers='b=10.0.0.2:7400 c=10.0.0.3:7400'"
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
REPORT = "#!/bin/sh\necho $$ $BATON_EPOCH >/var/lib/baton/report/leads\nexec sleep 1000\n"
SUDO = '#!/bin/sh\nexec "$@"\n'
SYSTEMCTL = '#!/bin/sh\nexec %s -B /run/stand_in_systemctl.py "$@"\n' % sys.executable
# What a host has of its own, and what of this machine's /etc a program needs.
OWN = {"etc": "/etc", "lib": "/var/lib", "local": "/usr/local", "run": "/run"}
OF_ETC = ("passwd", "group", "ld.so.cache", "nsswitch.conf")


def lines_of_readme():
    text = (SOURCE / "README.md").read_text("utf-8")
    return re.search(r"```\n(.*?)```", text[text.index(NEXT_TO_IT):], re.S).group(1)


def lines_for(name):
    """They begin with this machine's name and address, and its peers."""
    lines = lines_of_readme()
    assert lines.startswith(SELF + "\n"), lines
    others = ["%s=%s:7400" % pair for pair in ADDRESSES.items() if pair[0] != name]
    return lines.replace(SELF, "self=%s=%s:7400 peers='%s'" % (
        name, ADDRESSES[name], " ".join(others)), 1)


class Machine:
    """One host, after `make install` and with the key in its place."""

    def __init__(self, hosts, name, key):
        self.hosts, self.name = hosts, name
        self.process = None
        for folder in OWN:
            hosts.folder("%s-%s" % (name, folder))
        etc = self.path("etc")
        for file in OF_ETC:
            shutil.copy(pathlib.Path("/etc", file), etc)
        (etc / "baton").mkdir()
        (etc / "baton/cluster.key").touch(0o600)
        (etc / "baton/cluster.key").write_bytes(key)
        self.install()

    def path(self, folder):
        return pathlib.Path(self.hosts.dir, "%s-%s" % (self.name, folder))

    def install(self):
        programs, units = self.path("local") / "bin", self.path("local") / "lib/systemd/system"
        programs.mkdir()
        units.mkdir(parents=True)
        for program in ("baton", "baton-guardian"):
            shutil.copy(pathlib.Path(BATON).with_name(program), programs / program)
        unit = (SOURCE / "packaging/systemd/baton-run@.service.in").read_text("utf-8")
        unit = unit.replace("@bindir@", "/usr/local/bin")
        (units / "baton-run@.service").write_text(unit, "utf-8")
        shutil.copy(pathlib.Path(__file__).with_name("stand_in_systemctl.py"), self.path("run"))
        scripts = {"nightly-report": REPORT, "sudo": SUDO, "systemctl": SYSTEMCTL}
        for program, text in scripts.items():
            (programs / program).write_text(text, "ascii")
            (programs / program).chmod(0o755)

    def type(self):
        """Types README's lines."""
        mounts = " && ".join("mount --bind %s %s" % (self.path(folder), target)
                             for folder, target in OWN.items())
        self.process = subprocess.Popen(
            ["nsenter", "--net=/run/netns/" + self.hosts.network.space(self.name), "unshare",
             "--mount", "sh", "-ec", mounts + " && exec sh -e"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
            env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
        self.process.stdin.write(lines_for(self.name))
        self.process.stdin.close()

    def typed(self):
        """What they print, once they are done."""
        text = self.process.stdout.read()
        assert self.process.wait() == 0, text + self.log()
        return text

    def log(self):
        path = self.path("run") / "baton-test/log"
        return path.read_text("utf-8") if path.exists() else ""

    def status(self):
        done = baton("status", "--json", "--data", str(self.path("lib") / "baton/report"))
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def report(self):
        """The pid of the program and its epoch, if it runs here."""
        path = self.path("lib") / "baton/report/leads"
        words = path.read_text("ascii").split() if path.exists() else []
        return tuple(map(int, words)) if len(words) == 2 and is_alive(int(words[0])) else None

    def kill(self):
        """Ends the service; its guardian ends the program."""
        path = self.path("run") / "baton-test/pid"
        if path.exists() and is_alive(int(path.read_text("ascii"))):
            os.kill(int(path.read_text("ascii")), signal.SIGKILL)
        if self.process:
            self.process.stdout.close()
            self.process.wait()


@unittest.skipUnless(containers.may_contain(), "namespaces need root and unshare(1)")
class ThreeHosts(unittest.TestCase):
    def machines(self):
        hosts = Hosts(ADDRESSES)
        self.addCleanup(hosts.close)
        machines = {}
        key = os.urandom(32).hex().encode()
        for name, address in ADDRESSES.items():
            hosts.add_address(name, address)
            machines[name] = Machine(hosts, name, key)
            self.addCleanup(machines[name].kill)
        return machines

    def running(self, machines, beside=None):
        def one():
            found = {name: machine.report() for name, machine in machines.items()
                     if machine.report() and name != beside}
            return found if len(found) == 1 else None
        return until(one, lambda: "one report:\n" + "\n".join(
            machine.log() for machine in machines.values())).popitem()

    def test_the_report_runs_on_one_of_them_and_on_another_when_that_one_dies(self):
        machines = self.machines()
        for machine in machines.values():
            machine.type()
        for name, machine in machines.items():
            self.assertIn("node: %s\n" % name, machine.typed())
        leader, (pid, epoch) = self.running(machines)
        for machine in machines.values():
            until(lambda machine=machine: machine.status().get("leader", {}).get("id") == leader,
                  machine.log)
        machines[leader].kill()
        until(lambda: not is_alive(pid), machines[leader].log)
        follower, (_, later) = self.running(machines, beside=leader)
        self.assertNotEqual(follower, leader)
        self.assertGreater(later, epoch)


if __name__ == "__main__":
    main()
