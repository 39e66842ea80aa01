"""The manifests of packaging/kubernetes as pods to run, and what must agree in them.

faults() yields what is wrong in one file, a sentence each: flags that `baton` does not have, paths
without a volume, ports that differ, settings of a pod that leave it more than it needs.
"""
import os
import pathlib
import re
import subprocess
import urllib.parse

import yaml

from harness import BATON, baton

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "packaging/kubernetes"
WORKLOADS = ("StatefulSet", "DaemonSet", "Deployment")
PATHS = {"data": True, "socket": True, "key-file": False, "http-token-file": False,
         "change-token-file": False, "config": False}  # by flag: whether baton writes there
HARD = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}


def read(name):
    with open(MANIFESTS / name, encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def of_kind(documents, *kinds):
    return [one for one in documents if one["kind"] in kinds]


def seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(ms|s|m)?", str(text)).groups()
    return float(number) * {"ms": 0.001, "m": 60}.get(unit, 1)


def program_of(container):
    """An image has the name of its first program."""
    return container["image"]


def is_built(program):
    return os.path.exists(os.path.join(os.path.dirname(BATON), program))


def known_flags(program, words):
    """`baton` has a command before its flags, the other programs have none."""
    path = os.path.join(os.path.dirname(BATON), program)
    done = subprocess.run([path, *words[:program == "baton"], "--help"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, check=True)
    return set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", done.stdout, re.M))


def of_provider(url):
    """(name, value) of what the URL of raft: says, as the flags of `baton` say it."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "raft":
        yield "listen", parts.netloc
        for name, _, value in (one.partition("=") for one in parts.query.split("&")):
            for each in value.split(",") if name == "peers" else [value]:
                yield "peer" if name == "peers" else name, each


def flags(words):
    """(name, value) of the flags before `--`; all manifests write --name=value."""
    for word in words:
        if word == "--":
            return
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            yield name, value


class Pod:
    """A pod's template: its volumes, and its containers' command lines."""

    def __init__(self, workload, documents=()):
        self.workload = workload
        self.name = workload["metadata"]["name"]
        self.template = workload["spec"]["template"]
        self.spec = self.template["spec"]
        self.volumes = {one["name"]: one for one in self.spec.get("volumes", [])}
        for claim in workload["spec"].get("volumeClaimTemplates", []):
            self.volumes[claim["metadata"]["name"]] = claim
        self.configs = {one["metadata"]["name"]: one["data"]
                        for one in of_kind(documents, "ConfigMap")}

    def lasting(self):
        """Its containers that stay: those of the program, and sidecars."""
        return self.spec["containers"] + [one for one in self.spec.get("initContainers", [])
                                          if one.get("restartPolicy") == "Always"]

    def containers(self):
        return self.spec.get("initContainers", []) + self.spec["containers"]

    def setting(self, container, name):
        own = container.get("securityContext", {})
        return own[name] if name in own else self.spec["securityContext"].get(name)

    def settings(self, container):
        """(name, value) of its flags, and of the file that --config names."""
        for name, value in flags(container.get("args", [])):
            yield name, value
            if name == "config":
                yield from self.file_settings(value)

    def values(self, container):
        """The same, and what a provider's URL among them says."""
        for name, value in self.settings(container):
            yield name, value
            if name == "provider":
                yield from of_provider(value)

    def file_settings(self, path):
        for data in self.configs.values():
            for name, value in yaml.safe_load(data.get(pathlib.PurePath(path).name, "{}")).items():
                for one in value if isinstance(value, list) else [value]:
                    yield name, str(one)


def pods(documents):
    return [Pod(one, documents) for one in of_kind(documents, *WORKLOADS)]


# ---- What must agree -------------------------------------------------------------------------


def commands(container):
    """Program and words of each command of ours that the container or a probe of it runs."""
    if "args" in container:
        yield program_of(container), container["args"]
    for name, probe in container.items():
        if name.endswith("Probe") and "exec" in probe and probe["exec"]["command"][0] == "baton":
            yield "baton", probe["exec"]["command"][1:]


def wrong_flags(pod, container):
    for program, words in commands(container):
        known = known_flags(program, words)
        named = [name for name, _ in flags(words)]
        if words is container.get("args"):
            named = [name for name, _ in pod.settings(container)]
        for name in named:
            if name not in known:
                yield "%s %s has no --%s" % (program, words[0], name)


def wrong_variables(container):
    text = " ".join(container.get("args", []))
    given = {one["name"] for one in container.get("env", [])}
    for name in set(re.findall(r"\$\((\w+)\)", text)) - given:
        yield "$(%s) is not given" % name


def wrong_paths(pod, container):
    mounts = container.get("volumeMounts", [])
    for mount in mounts:
        if mount["name"] not in pod.volumes:
            yield "%s: no such volume" % mount["name"]
    for name, value in pod.values(container):
        path = value[len("agent:"):] if name == "provider" and value.startswith("agent:") else None
        path = value if name in PATHS else path
        below = [one for one in mounts if path and path.startswith(one["mountPath"] + "/")]
        if path and not below:
            yield "%s: no volume is mounted there" % path
        elif path and PATHS.get(name) and below[0].get("readOnly"):
            yield "%s: the volume cannot be written" % path
    for mount in mounts:
        secret = pod.volumes.get(mount["name"], {}).get("secret")
        if secret and secret.get("defaultMode") != 0o400:
            yield "secret %s: its mode is not 0400" % secret["secretName"]


def port_of(value):
    return int(value.rpartition(":")[2].split("/")[0])


def wrong_ports(pod, container):
    ports = {one["name"]: one["containerPort"] for one in container.get("ports", [])}
    used = {name: port_of(value) for name, value in pod.values(container)
            if name in ("listen", "http")}
    if sorted(used.values()) != sorted(ports.values()):
        yield "listens at %s, and names the ports %s" % (used, ports)
    for name, probe in container.items():
        if name.endswith("Probe") and "httpGet" in probe:
            port = probe["httpGet"]["port"]
            if ports.get(port, port) != used.get("http"):
                yield "%s: asks port %s" % (name, port)


def wrong_security(pod, container):
    own = container.get("securityContext", {})
    for name, value in HARD.items():
        if own.get(name) is not value:
            yield "%s is not %s" % (name, value)
    if own.get("capabilities", {}).get("drop") != ["ALL"]:
        yield "capabilities are left"
    if (pod.setting(container, "seccompProfile") or {}).get("type") != "RuntimeDefault":
        yield "no seccomp profile"
    if container in pod.lasting() and (
            pod.setting(container, "runAsNonRoot") is not True or
            not pod.setting(container, "runAsUser") or own.get("capabilities", {}).get("add")):
        yield "runs as root, or with a capability"


def wrong_workload(pod):
    spec = pod.workload["spec"]
    labels = pod.template["metadata"]["labels"]
    if spec["selector"]["matchLabels"].items() - labels.items():
        yield "its selector is for other pods"
    for container in pod.lasting():
        given = dict(pod.values(container))
        stop = seconds(given.get("stop-timeout", "10s"))
        if pod.spec.get("terminationGracePeriodSeconds", 30) <= stop:
            yield "is killed before --stop-timeout ends"
        peers = [value for name, value in pod.values(container) if name == "peer"]
        yield from wrong_group(pod, given, peers)


def wrong_group(pod, given, peers):
    spec = pod.workload["spec"]
    if not peers:
        return
    told = baton("explain", "--preset", given.get("preset", "default"), "--json")
    silence = re.search(r'"restart_silence_ms":([\d.]+)', told.stdout)
    if spec.get("minReadySeconds", 0) * 1000 <= float(silence.group(1)):
        yield "minReadySeconds: an update does not wait until a pod votes"
    if pod.workload["kind"] == "StatefulSet":
        name, port = pod.name, port_of(given["listen"])
        wanted = ["%s-%d=%s-%d.%s:%d" % (name, i, name, i, spec["serviceName"], port)
                  for i in range(spec["replicas"])]
        if peers != wanted:
            yield "its peers are not its pods: %s" % peers


def wrong_services(documents, all_pods):
    for service in of_kind(documents, "Service", "PodDisruptionBudget"):
        selector = service["spec"]["selector"]
        selector = selector.get("matchLabels", selector)
        chosen = [pod for pod in all_pods
                  if selector.items() <= pod.template["metadata"]["labels"].items()]
        ports = {one["containerPort"] for pod in chosen for container in pod.containers()
                 for one in container.get("ports", [])}
        if not chosen:
            yield "%s %s: chooses no pod" % (service["kind"], service["metadata"]["name"])
        for one in service["spec"].get("ports", []):
            if one["port"] not in ports:
                yield "Service %s: no pod has port %d" % (service["metadata"]["name"], one["port"])


def faults(documents):
    all_pods = pods(documents)
    for pod in all_pods:
        for fault in wrong_workload(pod):
            yield "%s: %s" % (pod.name, fault)
        for container in pod.containers():
            for check in (wrong_flags, wrong_paths, wrong_ports, wrong_security):
                for fault in check(pod, container):
                    yield "%s/%s: %s" % (pod.name, container["name"], fault)
            for fault in wrong_variables(container):
                yield "%s/%s: %s" % (pod.name, container["name"], fault)
    yield from wrong_services(documents, all_pods)
