"""The systemd units leave a service little: what `systemd-analyze security` says of each, 0 to 10;
and each starts its program again until it can run.

usage: units.py ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Each is started again until it can run, but not where a person must act: docs/operations.md.
UNTIL_IT_RUNS = {"StartLimitIntervalSec": "0", "Restart": "on-failure"}
ACTED_ON = {"baton@.service": "64 78", "baton-agent.service": "64 78",
            "baton-run@.service": "64 78", "baton-worker.service": "64 78",
            "baton-fleet.service": "64 78",
            "baton-detector.service": "64"}
EXAMPLES = ("baton-cron.service", "cron-leader.service")
MOST = {"baton@.service": 2.0, "baton-agent.service": 2.0, "baton-run@.service": 2.5,
        "baton-worker.service": 2.5, "baton-fleet.service": 2.5, "baton-detector.service": 3.5}


def exposure(text, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("@bindir@", "/bin"))
        told = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              universal_newlines=True).stdout
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", told)
    return float(found.group(1)) if found else 10.0


def owner_of(folder, name):
    return [one for one in os.listdir(folder) if one.endswith(".install") and
            "/" + name in pathlib.Path(folder, one).read_text(encoding="utf-8")][0]


def script_of(root, name, kind):
    """The package's maintainer script: its name, and its text, which is empty if there is none."""
    folder = os.path.join(root, "packaging/debian")
    script = pathlib.Path(folder, owner_of(folder, name).replace(".install", "." + kind))
    return script.name, script.read_text(encoding="utf-8") if script.exists() else ""


def left_running(root):
    """A unit of a Debian package is stopped where the package is removed, and by no upgrade."""
    bad = []
    for name in MOST:
        prerm, script = script_of(root, name, "prerm")
        if not re.search(r'= remove .*deb-systemd-invoke stop\b.*[ \']' +
                         re.escape(name.replace("@", "@*")), script, re.S):
            bad.append("%s: %s does not stop it" % (name, prerm))
    return bad


def left_behind(root):
    """Once its package is purged, no link of a unit that was enabled is left, and no cache."""
    bad = []
    for name in MOST:
        postrm, text = script_of(root, name, "postrm")
        with tempfile.TemporaryDirectory() as etc:
            wants = pathlib.Path(etc, "multi-user.target.wants")
            wants.mkdir()
            ours, others = wants / name.replace("@", "@a"), wants / "baton-cron.service"
            for link in (ours, others):
                link.symlink_to("/lib/systemd/system/" + name)
            cache = pathlib.Path(etc, "private", name.split(".")[0])
            cache.mkdir(parents=True)
            script = re.sub("/etc/systemd/system|/var/cache", etc, text)
            script = script.replace("#DEBHELPER#", "").replace("/run/", "/nonexistent/")
            for step, left in (("upgrade", True), ("remove", True), ("purge", False)):
                subprocess.run(["sh", "-c", script, "postrm", step], check=True,
                               env={"PATH": "/nonexistent:/bin"})
                if step != "purge" and not cache.exists():
                    bad.append("%s: %s %s: removes the cache" % (name, postrm, step))
                if ours.is_symlink() != left or not others.is_symlink():
                    bad.append("%s: %s %s: links that are left: %s" %
                               (name, postrm, step, [one.name for one in wants.iterdir()]))
            if cache.exists() and "CacheDirectory=" + cache.name in \
                    pathlib.Path(root, "packaging/systemd", name + ".in").read_text("utf-8"):
                bad.append("%s: %s: leaves the cache" % (name, postrm))
    return bad


def main():
    if not shutil.which("systemd-analyze"):
        print("skipped: systemd-analyze is not installed")
        sys.exit(SKIPPED)
    assert exposure("[Service]\nExecStart=/bin/true\n", "open.service") > 9
    bad = []
    for name, most in MOST.items():
        path = os.path.join(sys.argv[1], "packaging/systemd", name + ".in")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        got = exposure(text, name)
        if got > most:
            bad.append("%s: exposure %.1f; %.1f is the most" % (name, got, most))
        user = (re.search(r"^User=(.*)$", text, re.M) or [0, re.split("[@.]", name)[0]])[1]
        if user == "baton": # the group that docs/agent.md has users make
            bad.append("%s: User=: systemd refuses the name of a group" % name)
        wanted = dict(UNTIL_IT_RUNS, RestartPreventExitStatus=ACTED_ON[name])
        if name == "baton-run@.service":
            wanted.update(SuccessExitStatus="143", RestartForceExitStatus="143")
        bad += ["%s: %s=%s is missing" % (name, key, value) for key, value in wanted.items()
                if "\n%s=%s\n" % (key, value) not in text]
    for name in EXAMPLES:
        path = os.path.join(sys.argv[1], "examples/cron", name)
        with open(path, encoding="utf-8") as file:
            if "\nStartLimitIntervalSec=0\n" not in file.read():
                bad.append("%s: is given up after five starts: StartLimitIntervalSec=0" % name)
    bad += left_running(sys.argv[1]) + left_behind(sys.argv[1])
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
