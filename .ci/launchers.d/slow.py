"""A link that is longer: takes connections at one address and hands what arrives on to another, later by a time, both ways.

Usage: slow.py HOST:PORT TARGET:PORT MILLISECONDS"""

import asyncio
import sys


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def carry(reader, writer, delay):
    """Hands on what comes, each piece when it is due."""
    loop, due = asyncio.get_running_loop(), asyncio.Queue()

    async def deliver():
        while True:
            when, piece = await due.get()
            await asyncio.sleep(max(0, when - loop.time()))
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        writer.close()

    delivering = asyncio.ensure_future(deliver())
    try:
        while piece := await reader.read(1 << 18):
            due.put_nowait((loop.time() + delay, piece))
    except ConnectionError:
        pass
    due.put_nowait((loop.time() + delay, b""))
    await asyncio.gather(delivering, return_exceptions=True)


async def main():
    here, there, delay = address(sys.argv[1]), address(sys.argv[2]), float(sys.argv[3]) / 1000

    async def accepted(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(*there)
        except OSError:
            writer.close()  # Nobody is there yet.
            return
        await asyncio.gather(carry(reader, far_writer, delay), carry(far_reader, writer, delay))

    server = await asyncio.start_server(accepted, *here)
    async with server:
        await server.serve_forever()


asyncio.run(main())
