"""Starts one service of a template unit as systemd does, of what the unit and its drop-ins ask for:
the environment, the credential, the state directory, the dynamic user, and Type=notify.

usage: systemctl daemon-reload | enable --now NAME@INSTANCE
"""
import os
import pathlib
import shlex
import socket
import subprocess
import sys

UNITS = "/usr/local/lib/systemd/system"
DROP_INS = "/etc/systemd/system"
RUN = pathlib.Path("/run/baton-test")  # the credentials, the socket, and what the service prints
USER = 61184  # the first of those that systemd gives away
READY_S = 60


def settings_of(name, instance):
    """{setting: values} of [Service]; an %i is filled in."""
    paths = [pathlib.Path(UNITS, name + "@.service"),
             *sorted(pathlib.Path(DROP_INS, "%s@%s.service.d" % (name, instance)).glob("*.conf"))]
    found, section = {}, ""
    for line in "\n".join(path.read_text("utf-8") for path in paths).splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            key, _, value = line.replace("%i", instance).partition("=")
            found.setdefault(key, []).append(value)
    return found


def owned(path):
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, USER, USER)
    path.chmod(0o700)
    return path


def credentials(settings):
    folder = owned(RUN / "credentials")
    for one in settings.get("LoadCredential", []):
        name, _, source = one.partition(":")
        file = folder / name
        file.write_bytes(pathlib.Path(source).read_bytes())
        file.chmod(0o400)
        os.chown(file, USER, USER)
    return str(folder)


def environment(settings, folder):
    env = {"PATH": os.environ["PATH"], "CREDENTIALS_DIRECTORY": folder,
           "NOTIFY_SOCKET": str(RUN / "notify"),
           "STATE_DIRECTORY": str(owned(pathlib.Path("/var/lib", *settings["StateDirectory"])))}
    lines = [line.replace("%d", folder) for line in settings.get("Environment", [])]
    for file in settings.get("EnvironmentFile", []):
        lines += pathlib.Path(file).read_text("utf-8").splitlines()
    env.update(line.split("=", 1) for line in lines)
    return env


def words_of(line, env):
    """A $NAME that is a word of its own becomes as many as its value has."""
    return [one for word in shlex.split(line)
            for one in (env.get(word[1:], "").split() if word.startswith("$") else [word])]


def start(name, instance):
    settings = settings_of(name, instance)
    owned(RUN)
    env = environment(settings, credentials(settings))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(env["NOTIFY_SOCKET"])
        os.chmod(env["NOTIFY_SOCKET"], 0o777)
        notified.settimeout(READY_S)
        with open(RUN / "log", "ab") as log:
            service = subprocess.Popen(
                words_of(settings["ExecStart"][0], env), env=env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, user=USER, group=USER,
                extra_groups=[], umask=int(settings["UMask"][0], 8))
        (RUN / "pid").write_text(str(service.pid), "ascii")
        while b"READY=1" not in notified.recv(4096).split(b"\n"):
            pass


def main():
    if sys.argv[1] == "daemon-reload":
        return
    assert sys.argv[1:3] == ["enable", "--now"], sys.argv
    name, _, instance = sys.argv[3].partition("@")
    start(name, instance)


if __name__ == "__main__":
    main()
