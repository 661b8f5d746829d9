"""The outbox: an order and its message in one transaction, the work and its end in another.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL.
"""

import psycopg

import menzil

with menzil.Menzil() as mq, psycopg.connect(mq.dsn) as conn:
    mq.channel_set("billing")
    conn.execute("create table if not exists orders (id serial primary key, billed int default 0)")
    conn.commit()

    # Send: the message is a row of your transaction.
    (order,) = conn.execute("insert into orders default values returning id").fetchone()
    mq.send("billing", {"order": order}, ordering_key="ada", idempotency_key=f"order-{order}", conn=conn)
    conn.commit()

    # Rolled back: nothing is sent.
    conn.execute("insert into orders default values")
    mq.send("billing", {"order": "none"}, conn=conn)
    conn.rollback()

    # Receive: a lease for 30 seconds; the work and the end of the message are committed together.
    for message in mq.dequeue(limit=100, lease=30, channels="billing"):
        print("attempt", message.attempt, message.payload)
        conn.execute("update orders set billed = billed + 1 where id = %s", [message.payload["order"]])
        mq.complete(message, conn=conn)
        conn.commit()
        print(mq.status(message.id).status)
