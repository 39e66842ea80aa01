"""Containers of the manifests, run for real without an engine.

Each pod has a network, PID, mount, UTS and IPC namespace of its own, the volumes of its manifest
as Kubernetes makes them, a root that it cannot write, its user, no capability, no new privileges,
and a filter of system calls (inside.py).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import manifests
from harness import BATON, DEADLINE_S, until

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "../integration/faults"))
from namespaces import Network, run  # noqa: E402

PROGRAMS = "/baton"  # where the image has them
OF_CONTAINER = ["unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--kill-child"]
BARE = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def may_contain():
    """Whether this user may make containers, and the filter's library is here."""
    words = [*OF_CONTAINER, sys.executable, "-c",
             "import ctypes; ctypes.CDLL('libseccomp.so.2')"]
    return os.geteuid() == 0 and shutil.which("unshare") is not None and subprocess.run(
        words, stderr=subprocess.DEVNULL, check=False).returncode == 0


def children(pid):
    try:
        path = pathlib.Path("/proc/%d/task/%d/children" % (pid, pid))
        return [int(word) for word in path.read_text("ascii").split()]
    except OSError:
        return []


def status_of(pid):
    lines = pathlib.Path("/proc/%d/status" % pid).read_text("utf-8").splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


class Hosts:
    """The machines: a network, the volumes, and the containers that run."""

    def __init__(self, names):
        self.dir = tempfile.mkdtemp(prefix="baton-e2e-", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.mounts = []
        self.containers = []
        self.network = Network(names)
        self.addresses = dict(self.network.hosts)

    def add_address(self, name, address):
        run("ip", "-n", self.network.space(name), "address", "add", address + "/24", "dev", "eth0")
        self.addresses[name] = address

    def close(self):
        for container in self.containers:
            container.kill()
        for path in reversed(self.mounts):
            subprocess.run(["umount", path], check=False)
        self.network.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- Volumes, as Kubernetes makes them ------------------------------------------------------

    def folder(self, name, mode=0o755, owner=0, group=0):
        path = os.path.join(self.dir, name)
        if not os.path.isdir(path):
            os.makedirs(path)
            os.chown(path, owner, group)
            os.chmod(path, mode)
        return path

    def claim(self, name, group):
        """Of the group fsGroup, which may write, and passes it on to what is made in it."""
        return self.folder(name, 0o2775, 0, group)

    def secret(self, name, files, mode, group):
        """A tmpfs, whose files are links to those of a folder that is replaced as a whole. With
        fsGroup each belongs to it, which may read."""
        path = self.folder(name)
        if os.listdir(path):
            return path
        run("mount", "-t", "tmpfs", "tmpfs", path)
        self.mounts.append(path)
        os.chown(path, 0, group)
        os.chmod(path, 0o3777)
        now = os.path.join(path, "..2026_01_01")
        os.mkdir(now)
        os.chown(now, 0, group)
        os.chmod(now, 0o2755)
        os.symlink("..2026_01_01", os.path.join(path, "..data"))
        for file, text in files.items():
            with open(os.path.join(now, file), "w", encoding="ascii") as out:
                out.write(text)
            os.chown(out.name, 0, group)
            os.chmod(out.name, mode | (0o440 if group else 0))
            os.symlink("..data/" + file, os.path.join(path, file))
        return path


class Container:
    """One container of a pod, as the manifest says; `values` are those of the downward API."""

    def __init__(self, hosts, host, pod, container, secrets, **values):
        self.hosts, self.host, self.pod, self.container = hosts, host, pod, container
        self.name = values.get("name", host)  # of the pod
        self.label = "%s-%s" % (self.name, container["name"])
        self.values = {"metadata.name": self.name, "spec.nodeName": host,
                       "status.podIP": hosts.addresses[host]}
        self.secrets = secrets
        self.process = None
        hosts.containers.append(self)

    def environment(self):
        env = {one["name"]: self.values[one["valueFrom"]["fieldRef"]["fieldPath"]]
               for one in self.container.get("env", [])}
        return {"PATH": PROGRAMS + ":/usr/bin:/bin", **env}

    def words(self):
        env = self.environment()
        words = []
        for word in self.container["args"]:
            for name, value in env.items():
                word = word.replace("$(%s)" % name, value)
            words.append(word)
        return [manifests.program_of(self.container), *words]

    def volume(self, name):
        """The folder of this machine that is the volume."""
        volume = self.pod.volumes[name]
        group = self.pod.spec["securityContext"].get("fsGroup", 0)
        if "secret" in volume:
            return self.hosts.secret("secret-%s-%s" % (self.name, name), self.secrets,
                                     volume["secret"]["defaultMode"], group)
        if "configMap" in volume:
            return self.hosts.secret("config-%s-%s" % (self.name, name),
                                     self.pod.configs[volume["configMap"]["name"]], 0o644, group)
        if "hostPath" in volume:
            path = volume["hostPath"]["path"].strip("/").replace("/", "-")
            return self.hosts.folder("%s-%s" % (self.host, path))
        if "emptyDir" in volume:
            return self.hosts.folder("%s-%s" % (self.name, name), 0o2777 if group else 0o777, 0,
                                     group)
        return self.hosts.claim("%s-%s" % (self.name, name), group)

    def mounts(self):
        mounts = [[os.path.dirname(os.path.abspath(BATON)), PROGRAMS, False]]
        for one in self.container.get("volumeMounts", []):
            mounts.append([self.volume(one["name"]), one["mountPath"],
                           not one.get("readOnly", False)])
        return mounts

    def spec(self, words, known):
        """`known` are names of other containers, as the DNS of the cluster has them."""
        setting = lambda name: self.pod.setting(self.container, name)  # noqa: E731
        groups = self.pod.spec["securityContext"].get("supplementalGroups", [])
        own = self.pod.spec["securityContext"].get("fsGroup")
        lines = ["127.0.0.1 localhost"]
        lines += ["%s %s" % (self.hosts.addresses[host], name) for name, host in known.items()]
        return {"uid": setting("runAsUser"), "gid": setting("runAsGroup") or 0,
                "groups": groups + ([own] if own else []), "name": self.name,
                "env": self.environment(), "words": words, "mounts": self.mounts(),
                "files": {"/etc/hosts": "\n".join(lines) + "\n", "/etc/resolv.conf": "",
                          "/etc/nsswitch.conf": "hosts: files\n"}}

    def prepare(self):
        """What the init container does."""
        for one in self.pod.spec.get("initContainers", []):
            if one in self.pod.lasting():
                continue
            program, owner, *paths = one["command"]
            assert program == "chown", one
            where = {mount["mountPath"]: mount["name"] for mount in one["volumeMounts"]}
            for path in paths:
                os.chown(self.volume(where[path]), *map(int, owner.split(":")))

    def start(self, known=()):
        self.prepare()
        root = self.hosts.folder("root-" + self.label)
        spec = self.spec(self.words(), dict(known))
        with open(self.log_path(), "ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", "--net=/run/netns/" + self.hosts.network.space(self.host),
                 *OF_CONTAINER, *([] if self.has_network() else ["--net"]), sys.executable, "-B",
                 os.path.join(HERE, "inside.py"), root, json.dumps(spec)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def has_network(self):
        """A container without ports gets a network of its own, in which there is nothing."""
        return bool(self.container.get("ports"))

    def log_path(self):
        return os.path.join(self.hosts.dir, "log-" + self.label)

    def log(self):
        return pathlib.Path(self.log_path()).read_text("utf-8")

    def first(self):
        """Process 1, when it is the program of the image."""
        def of_image():
            found = children(self.process.pid)
            return found and status_of(found[0])["Name"][0].startswith("baton") and found[0]
        return until(of_image, lambda: "%s runs: %s" % (self.name, self.log()))

    def elector(self):
        return until(lambda: [pid for pid in children(self.first())
                              if status_of(pid)["Name"] == ["baton"]], self.log)[0]

    def path(self, inside):
        """A path of the container, as this machine knows it."""
        for source, target, _ in self.mounts():
            if inside.startswith(target + "/"):
                return source + inside[len(target):]
        raise AssertionError("%s: no volume has it" % inside)

    def enter(self, *words):
        """Runs a command inside, as the container's user, as a probe is run."""
        user = self.pod.setting(self.container, "runAsUser")
        return subprocess.run(
            ["nsenter", "-t", str(self.first()), "-m", "-p", "-n", "-u", "-i", "-r", "-w",
             "setpriv", "--reuid=%d" % user,
             "--regid=%d" % self.pod.setting(self.container, "runAsGroup"),
             "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *words],
            env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True, timeout=DEADLINE_S, check=False)

    def probe(self, name):
        """Its output; an AssertionError if it fails."""
        probe = self.container[name]
        if "exec" in probe:
            done = self.enter(*probe["exec"]["command"])
        else:
            ports = {one["name"]: one["containerPort"] for one in self.container["ports"]}
            url = "http://%s:%d%s" % (self.hosts.addresses[self.host],
                                      ports[probe["httpGet"]["port"]], probe["httpGet"]["path"])
            done = subprocess.run(
                ["ip", "netns", "exec", self.hosts.network.space(self.host), "curl", "-fsS", url],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, "%s of %s: %s" % (name, self.name, done.stdout)
        return done.stdout

    def answers(self, name):
        try:
            return self.probe(name)
        except AssertionError:
            return None

    def kill(self):
        """The whole container, by its process 1, as an engine does."""
        if self.process and self.process.poll() is None:
            for pid in children(self.process.pid):
                os.kill(pid, 9)
            self.process.wait()


def container_of(pod, name=None):
    return next(one for one in pod.lasting() if name in (None, one["name"]))


def pod_of(name):
    return manifests.pods(manifests.read(name))[0]
