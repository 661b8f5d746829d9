"""A worker: one handler tries again, one writes in the transaction that ends its message.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL. It ends when there is nothing left to do; in earnest
it would be started with `menzil worker worker:app`, on as many hosts as you like, and run until SIGTERM.
"""

import logging

import psycopg

import menzil

app = menzil.Worker(endpoints=False)


@app.handler("emails", concurrency=1)
async def send_email(message: menzil.Message) -> menzil.Outcome | None:
    """The mail server is busy at first, and has never heard of carl."""
    to = message.payload["to"]
    if to == "bert" and message.attempt == 1:
        return menzil.Fail("the mail server is busy", retry=0)
    if to == "carl":
        return menzil.Fail("no such mailbox", retry=False)
    print(f"mail to {to}, attempt {message.attempt}")
    return None


@app.handler("orders", transaction=True)
def book(message: menzil.Message, conn: psycopg.Connection) -> None:
    """The row and the end of the message are committed together: booked once, however often a worker dies."""
    order = message.payload["order"]
    conn.execute("insert into booked values (%s)", (order,))
    conn.execute("select menzil.send('emails', '{\"to\": \"dora\"}')")
    print(f"booked order {order}")


if __name__ == "__main__":
    logging.getLogger("menzil.worker").setLevel("ERROR")  # it would tell us of every failure
    with menzil.Menzil() as mq:
        mq.channel_set("emails")
        mq.channel_set("orders")
        with psycopg.connect(mq.dsn) as conn:
            conn.execute("create table if not exists booked (number integer)")
        mq.send_batch("emails", [{"to": name} for name in ("anna", "bert", "carl")])
        app.run(once=True)
        mq.send("orders", {"order": 42})
        done = app.run(once=True)
        print(f"delivered {done.delivered}")
