#!/usr/bin/python3
"""A contender written from the text of the seeds, with a stock client; it knows nothing of Baton.

    plain_master.py LAYOUT PORT LOCK TTL_MS RECORD

LAYOUT is master-election (seed 000) or sovereign (seed 001); the other times keep the seeds'
proportions to TTL_MS. Into RECORD goes a line for each leadership begun, "led FIRST_NS END_NS", and
for each renewal "more END_NS": from the answer to SET NX until the lock ends by its own reckoning,
which is the instant at which its request was sent plus the lock's lifetime. SIGTERM ends it
cleanly.
"""
import json
import os
import random
import signal
import sys
import time
import uuid
from datetime import datetime, timezone

import redis

ACQUIRE = """
if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
    redis.call("SET", KEYS[2], ARGV[3], "PX", ARGV[2])
    return 1
end
return 0
"""
RENEW = """
if redis.call("GET", KEYS[1]) == ARGV[1] then
    redis.call("PEXPIRE", KEYS[1], ARGV[2])
    redis.call("SET", KEYS[2], ARGV[3], "PX", ARGV[2])
    return 1
end
return 0
"""
RELEASE = """
if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1], KEYS[2])
end
return 0
"""


def boot_ns():
    """The clock of Baton's eyewitness: instants of two processes compare."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wall_ms():
    return int(time.time() * 1000)


class Contender:
    def __init__(self, port, lock, ttl_ms, record):
        self.redis = redis.Redis(port=port, decode_responses=True)
        self.lock, self.ttl_ms = lock, ttl_ms
        self.id = str(uuid.uuid4())
        self.is_leader = self.is_stopping = False
        signal.signal(signal.SIGTERM, self.stop)
        self.record = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *words):
        os.write(self.record, (" ".join(map(str, words)) + "\n").encode())

    def end_of(self, sent_ns):
        return sent_ns + self.ttl_ms * 1000000

    def try_to_lead(self):
        sent = boot_ns()
        if self.take():
            self.is_leader = True
            self.note("led", boot_ns(), self.end_of(sent))
            self.on_leading()

    def go_on_leading(self):
        sent = boot_ns()
        if self.renew():
            self.note("more", self.end_of(sent))
        else:
            self.is_leader = False

    def run(self):
        self.try_to_lead()
        while not self.is_stopping:
            self.beat()
            time.sleep((self.heartbeat_ms if self.is_leader else self.check_ms) / 1000)
            if self.is_stopping:
                break
            if self.is_leader:
                self.go_on_leading()
            elif not self.is_led():
                time.sleep(random.random() * self.delay_ms / 1000)
                self.try_to_lead()
        if self.is_leader:
            self.note("more", boot_ns())  # no later than this
            self.release()
        self.leave()

    def stop(self, *_):
        self.is_stopping = True

    def beat(self):
        """What a process tells of itself, whatever its role."""

    def on_leading(self):
        """What a new leader does first."""

    def leave(self):
        """What a process takes back that ends."""


class MasterElection(Contender):
    """Seed 000: three scripts, a heartbeat beside the lock, a registry in three hashes."""

    def __init__(self, port, lock, ttl_ms, record):
        super().__init__(port, lock, ttl_ms, record)
        self.heartbeat_ms, self.check_ms, self.delay_ms = ttl_ms / 3, ttl_ms / 6, ttl_ms / 15
        self.keys = [lock + ":master", lock + ":heartbeat"]
        self.acquire_script = self.redis.register_script(ACQUIRE)
        self.renew_script = self.redis.register_script(RENEW)
        self.release_script = self.redis.register_script(RELEASE)

    def take(self):
        return self.acquire_script(self.keys, [self.id, self.ttl_ms, wall_ms()]) == 1

    def renew(self):
        return self.renew_script(self.keys, [self.id, self.ttl_ms, wall_ms()]) == 1

    def release(self):
        self.release_script(self.keys, [self.id])

    def is_led(self):
        """checkMasterExists: there is a master, and its heartbeat is not older than the lock."""
        master, beat = self.redis.mget(self.keys)
        return bool(master and beat and wall_ms() - float(beat) <= self.ttl_ms)

    def beat(self):
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        info = {"processId": self.id, "nodeId": self.id, "lastSeen": now,
                "role": "master" if self.is_leader else "slave",
                "capabilities": {"canProcessDetections": True, "maxSubscriptions": 100,
                                 "preferredWorkload": 80}}
        self.redis.hset(self.lock + ":processes", self.id, json.dumps(info))
        self.redis.hset(self.lock + ":channels", self.id, "worker:slave:" + self.id)
        if self.is_leader:
            self.redis.set(self.lock + ":master_process", json.dumps(info))
            self.redis.hdel(self.lock + ":slaves", self.id)
        else:
            self.redis.hset(self.lock + ":slaves", self.id, json.dumps(
                {"nodeId": self.id, "identifier": "plain", "registeredAt": now, "lastSeen": now}))

    def leave(self):
        for name in ("processes", "channels", "slaves"):
            self.redis.hdel(self.lock + ":" + name, self.id)


class Sovereign(Contender):
    """Seed 001: SET NX EX and a second look, EXPIRE and SETEX while it leads, DEL at the end."""

    def __init__(self, port, lock, ttl_ms, record):
        super().__init__(port, lock, ttl_ms, record)
        self.heartbeat_ms, self.check_ms, self.delay_ms = ttl_ms / 3, ttl_ms / 2, 0
        self.ttl_s = ttl_ms // 1000
        self.stale_ms = (self.ttl_s + 5) * 1000
        self.leader, self.beats = lock + ":leader", lock + ":heartbeat:"

    def take(self):
        return bool(self.redis.set(self.leader, self.id, nx=True, ex=self.ttl_s)) and \
            self.redis.get(self.leader) == self.id

    def renew(self):
        return self.redis.get(self.leader) == self.id and \
            bool(self.redis.expire(self.leader, self.ttl_s))

    def release(self):
        if self.redis.get(self.leader) == self.id:
            self.redis.delete(self.leader)
        self.redis.delete(self.beats + self.id)

    def is_led(self):
        """checkLeaderHealth: one whose heartbeat is stale is challenged, and SET NX decides."""
        leader = self.redis.get(self.leader)
        beat = self.redis.get(self.beats + leader) if leader else None
        return bool(leader and beat and wall_ms() - float(beat) <= self.stale_ms)

    def beat(self):
        if self.is_leader:
            self.redis.setex(self.beats + self.id, self.ttl_s + 5, wall_ms())

    def on_leading(self):
        for key in self.redis.scan_iter(self.beats + "*"):
            beat = self.redis.get(key)
            if beat and wall_ms() - float(beat) > self.stale_ms:
                self.redis.delete(key)


LAYOUTS = {"master-election": MasterElection, "sovereign": Sovereign}

if __name__ == "__main__":
    LAYOUTS[sys.argv[1]](int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]).run()
