#!/usr/bin/python3
"""Forwards TCP connections, as a tunnel, a sidecar or a port-forward on loopback does.

    tunnel.py HOST:PORT=HOST:PORT ...    listens at the left one, forwards to the right one

When it is killed, all its connections end, and each new one is refused.
"""
import asyncio
import sys


def place(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def pour(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def forward(target, reader, writer):
    try:
        far_reader, far_writer = await asyncio.open_connection(*target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(pour(reader, far_writer), pour(far_reader, writer))


async def main(pairs):
    for pair in pairs:
        here, there = pair.split("=")
        target = place(there)
        await asyncio.start_server(lambda r, w, t=target: forward(t, r, w), *place(here))
    await asyncio.Event().wait()


asyncio.run(main(sys.argv[1:]))
