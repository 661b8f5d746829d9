"""A long task beside short ones: it does a page per lease, leaves a bookmark, and lets the others in between.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL. It uses the async client.
"""

import asyncio

import menzil


async def main() -> None:
    async with menzil.AsyncMenzil() as mq:
        await mq.channel_set("exports", max_concurrency=1)
        await mq.send("exports", {"name": "catalogue", "pages": 3})
        await mq.send_batch("exports", [{"name": "logo", "pages": 1}, {"name": "poster", "pages": 1}])
        while messages := await mq.dequeue(limit=1, lease=10, channels="exports"):
            (message,) = messages
            page = int(message.state or 0) + 1
            print(f"{message.payload['name']}, page {page} of {message.payload['pages']}")
            if page < message.payload["pages"]:
                await mq.defer(message, state=b"%d" % page)  # behind what waits; costs no retry
            else:
                await mq.complete(message)


asyncio.run(main())
