#!/usr/bin/env python3
"""The spread run: five processes share a simulation, and are killed and started again at random.

usage: run.py [--programs DIR] [--folder DIR] [--frames N] [--kills N] [--seed N]

Each process is a member of a raft: group, a worker of a pool, and a master when it is elected. The
run ends when the frames are reached, and succeeds if the last state is bit for bit that of the same
simulation in one process. FOLDER gets the log of the run (README.md) and its pictures.

All processes end with this one, however it ends.
"""
import argparse
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCENE, BATCHES, FRAMES_A_ROUND = "1", "5", "5"
PROCESSES = 5
DOWN_MAX = 2  # of five; the others are the group's quorum
# Their lease outlasts a hiccup of a busy machine. A kill is proved long before it ends.
SETTINGS = "heartbeat-interval=100ms&heartbeat-timeout=1s&lease=1s&election-timeout=100ms-200ms"
END_FRAMES = 20  # without a kill
STALL_S = 60  # without a frame
WITH_ITS_PARENT = ["setpriv", "--pdeathsig", "TERM"]  # a process ends with run.py


class Failure(Exception):
    pass


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Log:
    """What all processes did, in one order and by one clock. Its methods are called under `news`,
    which is notified of each change."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8", buffering=1)
        self.begin = time.monotonic()
        self.news = threading.Condition()
        self.runners = {}
        self.attempts = {}
        self.master = None
        self.masters, self.frame, self.moved = 0, 0, self.begin
        self.hash = None

    def now(self):
        return time.monotonic() - self.begin

    def write(self, line):
        print(f"{self.now():.4f} {line}", file=self.file)

    def take(self, line):
        word, *rest = line.split()
        if word == "batch":
            self.take_batch(rest[0], rest[2])
        elif word == "done":
            self.hash = rest[0]
        elif word == "master":
            self.master, self.masters = rest[0], self.masters + 1
            self.write(line)
        elif int(rest[0]) > self.frame:  # a master may come to a frame once more
            self.frame, self.moved = int(rest[0]), time.monotonic()
            self.write(line)
        self.news.notify_all()

    def take_batch(self, batch, runner):
        if self.runners.get(batch) != runner:
            self.runners[batch] = runner
            self.attempts[batch] = self.attempts.get(batch, 0) + 1
            self.write(f"batch {batch} on {runner} attempt {self.attempts[batch]}")

    def end(self, name):
        self.write(f"end {name}")
        self.runners = {batch: runner for batch, runner in self.runners.items() if runner != name}
        if self.master == name:
            self.master = None
        self.news.notify_all()


class Process:
    """One of the five: started, killed, and started again."""

    def __init__(self, log, name, words, folder):
        self.log, self.name, self.words = log, name, words
        self.errors = os.path.join(folder, name + ".errors")
        with open(self.errors, "w", encoding="utf-8"):
            pass  # those of an earlier run are gone
        self.process = self.reader = None
        self.is_over = False  # nothing that it prints counts any more

    def start(self):
        self.is_over = False
        with open(self.errors, "a", encoding="utf-8") as errors:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stderr=errors,
                                            stdout=subprocess.PIPE, universal_newlines=True,
                                            start_new_session=True)
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout,))
        self.reader.start()

    def read(self, lines):
        for line in lines:
            with self.log.news:
                if not self.is_over:
                    self.log.take(line.strip())

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def has_failed(self):
        return not self.is_over and not self.is_up()

    def kill(self):
        """In the log nothing of it comes after its end, and no successor before it."""
        with self.log.news:
            self.is_over = True
            self.process.kill()
            self.log.end(self.name)
        self.finish()

    def stop(self):
        if self.is_up():
            self.process.terminate()

    def finish(self):
        if self.process:
            self.process.kill()
            self.reader.join()
            self.process.wait()
            self.process.stdout.close()


class Run:
    def __init__(self, options, nodes):
        self.log = Log(os.path.join(options.folder, "log"))
        self.random = random.Random(options.seed)
        self.marks = self.random.sample(range(1, options.frames - END_FRAMES), options.kills)
        self.marks.sort()
        self.frames = options.frames
        self.killed = {"master": 0, "worker": 0}
        self.killed_at = 0  # the frame of the latest one
        self.due = []  # (when, process): to be started again
        names = [f"n{i + 1}" for i in range(PROCESSES)]
        ports = free_ports(PROCESSES)
        peers = ",".join(f"{name}@127.0.0.1:{port}" for name, port in zip(names, ports))
        self.processes = []
        for name, port in zip(names, ports):
            data = os.path.join(nodes, name)
            os.mkdir(data, 0o700)
            url = f"raft://127.0.0.1:{port}?group=softbody&node={name}&peers={peers}&data={data}" \
                  f"&{SETTINGS}"
            program = os.path.join(options.programs, "example_softbody_spread")
            words = [*WITH_ITS_PARENT, program, url, name, SCENE, str(options.frames), BATCHES,
                     FRAMES_A_ROUND]
            self.processes.append(Process(self.log, name, words, options.folder))

    def victim(self):
        up = [one for one in self.processes if one.is_up()]
        masters = [one for one in up if one.name == self.log.master]
        workers = [one for one in up if one.name != self.log.master]
        if masters and self.random.random() < 0.5:
            return "master", masters[0]
        return "worker", self.random.choice(workers)

    def kill_one(self):
        with self.log.news:
            part, process = self.victim()
        process.kill()
        self.killed[part] += 1
        self.due.append((time.monotonic() + self.random.uniform(0.3, 1.5), process))
        say(f"{self.log.now():.2f} s, frame {self.log.frame}: {process.name} is killed, "
            f"a {part}\n")

    def turn(self):
        for when, process in list(self.due):
            if time.monotonic() >= when:
                self.due.remove((when, process))
                process.start()
        # A kill that had to wait does not come before the run has gone on after the one before.
        if self.marks and self.log.frame >= max(self.marks[0], self.killed_at + 1) and \
                len(self.due) < DOWN_MAX:
            self.marks.pop(0)
            self.killed_at = self.log.frame
            self.kill_one()
        for process in self.processes:
            if process.has_failed():
                raise Failure(f"{process.name} has ended by itself: see {process.errors}")
        if time.monotonic() > self.log.moved + STALL_S:
            raise Failure(f"no frame after {self.log.frame} in {STALL_S} s")

    def play(self, interrupts):
        for process in self.processes:
            process.start()
        while not self.log.hash:
            if interrupts:
                sys.exit(128 + interrupts[0])
            self.turn()
            with self.log.news:
                say(f"frame {self.log.frame} of {self.frames}, master {self.log.master or '-'}")
                self.log.news.wait(0.05)

    def stop(self):
        """All at once, since the last of a group has nobody to vote with; then what is left."""
        with self.log.news:
            for process in self.processes:
                process.is_over = True
        for process in self.processes:
            process.stop()
        limit = time.monotonic() + 5
        while any(one.is_up() for one in self.processes) and time.monotonic() < limit:
            time.sleep(0.02)
        for process in self.processes:
            process.finish()
        self.log.file.close()


def say(text):
    """A line that the next one replaces, unless it ends; on a terminal alone."""
    if text.endswith("\n"):
        print(("\r\033[K" if sys.stdout.isatty() else "") + text, end="", flush=True)
    elif sys.stdout.isatty():
        print("\r\033[K" + text, end="", flush=True)


def alone(options):
    """The hash and the states of the same simulation in one process."""
    states = os.path.join(options.folder, "states")
    done = subprocess.run([os.path.join(options.programs, "example_softbody"), SCENE,
                           str(options.frames), BATCHES, states, FRAMES_A_ROUND], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True)
    return re.search(r"([0-9a-f]{16})$", done.stdout).group(1), states


def draw(options, states):
    log = os.path.join(options.folder, "log")
    for words in (["timeline", log], ["film", states, BATCHES, log]):
        with open(os.path.join(options.folder, words[0] + ".svg"), "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, "-B", os.path.join(HERE, "draw.py"), *words],
                           stdout=file, check=True)


def judge(options, run):
    expected, states = alone(options)
    say(f"seed {options.seed}: frame {options.frames} after {run.log.now():.1f} s by {PROCESSES} "
        f"processes; killed: {run.killed['master']} masters, {run.killed['worker']} workers; "
        f"masters: {run.log.masters}\n"
        f"{run.log.hash} is the hash of the last state\n"
        f"{expected} in one process\n")
    if run.log.hash != expected:
        raise Failure("the states differ")
    draw(options, states)
    say(f"log, timeline.svg and film.svg are in {options.folder}\n")


def main():
    parser = argparse.ArgumentParser(description="Soft bodies over five processes, with kills.")
    parser.add_argument("--programs", default="build/bin", metavar="DIR")
    parser.add_argument("--folder", default="build/softbody", metavar="DIR")
    parser.add_argument("--frames", type=int, default=480, metavar="N")
    parser.add_argument("--kills", type=int, default=6, metavar="N")
    parser.add_argument("--seed", type=int, default=random.randrange(10000), metavar="N")
    options = parser.parse_args()
    if not 0 <= options.kills <= options.frames - END_FRAMES - 1:
        parser.error(f"--kills {options.kills}: must be 0 to the frames less {END_FRAMES + 1}")
    # Heard between two turns, when every process that was started is known.
    interrupts = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: interrupts.append(number))
    os.makedirs(options.folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="baton-softbody-") as nodes:
        run = Run(options, nodes)
        try:
            run.play(interrupts)
        finally:
            run.stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    judge(options, run)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
