"""A producer that dies at the worst moment."""

import asyncio
import base64
import sys

from tanist.client import Message

_DYING = """
import asyncio, base64, sys
from tanist.client import Message, Outcome, Producer

namesrv, group, topic, body, *keys = sys.argv[1:]

async def on_check(message):
    return Outcome.UNKNOWN

async def main():
    async with Producer(group=group, namesrv=namesrv, on_check=on_check) as producer:
        async with producer.transaction(Message(topic, base64.b64decode(body), keys=keys)):
            print("in the block", flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


async def die_in_a_transaction(namesrv: str, group: str, message: Message) -> None:
    """Have a producer killed between the half and its end, which nobody will ever send."""
    body = base64.b64encode(message.body).decode()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _DYING, namesrv, group, message.topic, body, *message.keys),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"in the block\n"
    finally:
        process.kill()
        await process.communicate()
