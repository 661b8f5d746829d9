"""FastAPI: a request sends in its own transaction, a worker inside the application handles it, the console is mounted.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL. You would serve `web` with uvicorn; this program
serves itself, makes three requests, and stops.
"""

import json
import socket
import threading
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

import menzil
from menzil.console import Access, Console
from menzil.contrib.fastapi import lifespan, queue

with menzil.Menzil() as first:  # in your program, a migration does this
    DSN = first.dsn
    first.channel_set("billing")

sessions = async_sessionmaker(create_async_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(DSN)))
mq = menzil.AsyncMenzil(DSN)
tasks = menzil.Worker(DSN, endpoints=False)
billed = threading.Event()


@tasks.handler("billing", transaction=sessions)
async def bill(message: menzil.Message, session: AsyncSession) -> None:
    await session.execute(text("select 'here you write the bill'"))
    print("billing", message.payload)
    billed.set()


async def in_session() -> AsyncIterator[AsyncSession]:
    async with sessions.begin() as session:
        yield session


Transaction = Annotated[AsyncSession, Depends(in_session)]
Queue = Annotated[menzil.AsyncMenzil, Depends(queue(mq))]
console = Console(DSN, authorize=lambda _: Access.viewer("anna"))
web = FastAPI(lifespan=lifespan(mq, worker=tasks, console=console))
web.mount("/queue", console)


@web.post("/orders/{order}")
async def order(order: int, session: Transaction, mq: Queue) -> dict[str, str]:
    await session.execute(text("select 'here you insert the order'"))
    await mq.send("billing", {"order": order}, conn=session)
    if order < 0:
        raise HTTPException(422, "There is no such order.")  # rolled back: nothing is sent
    return {"order": "accepted"}


def ask(method: str, url: str) -> str:
    try:
        with urlopen(Request(url, method=method), timeout=30) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except HTTPError as error:
        return f"{error.code} {json.loads(error.read())['detail']}"


listening = socket.create_server(("127.0.0.1", 0))
server = uvicorn.Server(uvicorn.Config(web, log_level="error"))
serving = threading.Thread(target=server.run, args=([listening],))
serving.start()
base = f"http://127.0.0.1:{listening.getsockname()[1]}"

print(ask("POST", f"{base}/orders/-1"))
print(ask("POST", f"{base}/orders/42"))
billed.wait(30)
print("console", ask("GET", f"{base}/queue/healthz")[:3])
server.should_exit = True
serving.join()
