"""A stand-in for `baton agent`, for the clients' tests: agent.py SOCKET STATE LIFETIME_MS.

Elections with lines, sessions by id and secret, keys and channels; kept in the file STATE, so that
the next one goes on. A process is dead when its pidfd says so, as for the real agent.
"""
import asyncio
import json
import os
import pathlib
import socket
import struct
import sys
import time


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


class Connection:
    def __init__(self, agent, writer):
        self.agent = agent
        self.writer = writer
        self.session = None
        self.watches, self.channels = {}, set()

    def say(self, **message):
        self.writer.write(json.dumps(message).encode() + b"\n")

    def do_hello(self, m):
        sessions = self.agent.state["sessions"]
        old = sessions.get(m.get("session"))
        if old and old["secret"] == m["secret"]:
            self.session = m["session"]
            old["end"] = now_ms() + self.agent.lifetime
        else:
            self.session = str(self.agent.next_index())
            sessions[self.session] = {"secret": m["secret"], "name": m.get("name", str(m["pid"])),
                                      "pid": m["pid"], "end": now_ms() + self.agent.lifetime}
        self.agent.connections[self.session] = self
        pid = struct.unpack("3i", self.writer.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        self.agent.attend(pid, self.session)
        self.say(id=m["id"], ok=True, version=1, name=sessions[self.session]["name"],
                 lifetime_ms=self.agent.lifetime, renew_ms=self.agent.lifetime / 6)
        self.say(event="session", session=self.session)
        return None

    def election(self, m):
        return self.agent.state["elections"].setdefault(
            m["election"], {"holder": None, "epoch": 0, "line": []})

    def do_campaign(self, m):
        election = self.election(m)
        if election["holder"] != self.session:
            election["line"].append(self.session)
        elif election["epoch"] > m["known_epoch"] or m["acts"]:
            self.say(event="leadership-acquired", election=m["election"], epoch=election["epoch"])
        else:
            self.agent.free(m["election"], self.session)
            election["line"].append(self.session)
        return {}

    def do_renew(self, _):
        self.agent.state["sessions"][self.session]["end"] = now_ms() + self.agent.lifetime
        return {"left_ms": self.agent.lifetime * 0.9}

    def do_resign(self, m):
        election = self.election(m)
        if election["holder"] != self.session or m.get("epoch", 0) not in (0, election["epoch"]):
            return {"ok": False, "code": "ENOTLEADER", "error": "not the leader"}
        self.agent.free(m["election"], self.session)
        election["line"].append(self.session)
        return {}

    do_drained = do_resign

    def do_leave(self, m):
        self.say(id=m["id"], ok=True)
        self.agent.free(m["election"], self.session)
        self.say(event="stopped", election=m["election"])
        return None

    def do_pass(self, m):
        holder = self.agent.connections.get(self.election(m)["holder"])
        holder.say(event="drain", election=m["election"], left_ms=1000)
        return {}

    def do_members(self, m):
        election = self.election(m)
        sessions = self.agent.state["sessions"]
        return {"members": [{"name": sessions[s]["name"]}
                            for s in [election["holder"], *election["line"]] if s]}

    def do_elections(self, _):
        sessions = self.agent.state["sessions"]
        return {"elections": [
            {"election": name, "epoch": e["epoch"], "waiting": len(e["line"]),
             "leader": e["holder"] and sessions[e["holder"]]["name"]}
            for name, e in self.agent.state["elections"].items()]}

    def do_metadata(self, _):
        return {}

    def do_get(self, m):
        value = self.agent.state["keys"].get(m["key"])
        return {"values": [value]} if value else {"ok": False, "code": "ENOENT", "error": "no key"}

    def do_list(self, m):
        return {"values": self.values(m["prefix"])}

    def values(self, prefix):
        return [v for k, v in sorted(self.agent.state["keys"].items()) if k.startswith(prefix)]

    def do_put(self, m):
        keys = self.agent.state["keys"]
        old = keys.get(m["key"], {"revision": 0})
        if m.get("revision", old["revision"]) != old["revision"]:
            return {"ok": False, "code": "ECONFLICT", "error": "another revision"}
        value = {"key": m["key"], "revision": self.agent.next_index(),
                 **{name: m[name] for name in ("text", "base64") if name in m}}
        if m.get("nothing"):
            keys.pop(m["key"], None)
            value["revision"] = 0
        else:
            keys[m["key"]] = value
        for one in self.agent.connections.values():
            for number, prefix in one.watches.items():
                if m["key"].startswith(prefix):
                    one.say(event="change", watch=number, values=[value])
        return {"revision": value["revision"]}

    def do_watch(self, m):
        self.watches[m["id"]] = m["prefix"]
        self.say(id=m["id"], ok=True)
        self.say(event="change", watch=m["id"], values=self.values(m["prefix"]))
        return None

    def do_unwatch(self, m):
        del self.watches[m["watch"]]
        return {}

    def do_publish(self, m):
        for one in self.agent.connections.values():
            if m["channel"] in one.channels:
                one.say(event="message", channel=m["channel"],
                        **{name: m[name] for name in ("text", "base64") if name in m})
        return {}

    def do_subscribe(self, m):
        self.channels.add(m["channel"])
        return {}

    def do_unsubscribe(self, m):
        self.channels.discard(m["channel"])
        return {}

    def do_bye(self, m):
        self.say(id=m["id"], ok=True)
        self.agent.end(self.session)
        self.writer.close()
        return None

    async def serve(self, reader):
        while line := await reader.readline():
            message = json.loads(line)
            reply = getattr(self, "do_" + message["do"])(message)
            if reply is not None:
                self.say(**{"id": message["id"], "ok": True, **reply})
            self.agent.settle()
        if self.agent.connections.get(self.session) is self:
            del self.agent.connections[self.session]


class Agent:
    def __init__(self, path, lifetime):
        self.path = pathlib.Path(path)
        self.lifetime = lifetime
        self.connections = {}
        self.state = {"index": 0, "sessions": {}, "elections": {}, "keys": {}}
        if self.path.exists():
            self.state = json.loads(self.path.read_text(encoding="utf-8"))

    def next_index(self):
        self.state["index"] += 1
        return self.state["index"]

    def attend(self, pid, session):
        """Until the process is dead; then its session is over."""
        pidfd = os.pidfd_open(pid)

        def dead():
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)
            self.end(session)
            self.settle()
        asyncio.get_running_loop().add_reader(pidfd, dead)

    def free(self, name, session):
        election = self.state["elections"].get(name, {"line": [], "holder": None})
        election["line"] = [one for one in election["line"] if one != session]
        if election["holder"] == session:
            election["holder"] = None
            if session in self.connections:
                self.connections[session].say(event="leadership-lost", election=name,
                                              epoch=election["epoch"], reason="resigned")

    def end(self, session):
        self.state["sessions"].pop(session, None)
        for name in self.state["elections"]:
            self.free(name, session)

    def settle(self):
        """Ends the sessions whose time is over, grants what nobody holds, and stores it all."""
        for session, entry in list(self.state["sessions"].items()):
            if entry["end"] < now_ms():
                self.end(session)
                if session in self.connections:
                    self.connections[session].say(event="session", session=None)
                    self.connections[session].writer.close()
        for name, election in self.state["elections"].items():
            if election["holder"] is None and election["line"]:
                session = election["line"].pop(0)
                election.update(holder=session, epoch=self.next_index())
                if session in self.connections:
                    self.connections[session].say(event="leadership-acquired", election=name,
                                                  epoch=election["epoch"])
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.state), encoding="utf-8")
        new.rename(self.path)


async def main(path, state, lifetime):
    agent = Agent(state, float(lifetime))

    async def accept(reader, writer):
        await Connection(agent, writer).serve(reader)
    if os.path.exists(path):
        os.unlink(path)
    server = await asyncio.start_unix_server(accept, path)
    async with server:
        while True:
            agent.settle()
            await asyncio.sleep(0.02)

asyncio.run(main(*sys.argv[1:]))
