"""A consumer: batches, a failure that is tried again, one that is not, and the list of dead letters.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL. It ends when there is nothing left to do.
"""

import psycopg

import menzil


class BusyError(Exception):
    """The other side is busy."""


def resize(message: menzil.Message) -> None:
    """The work: fails once for the large picture, and always for the broken one."""
    picture = message.payload["picture"]
    if picture == "large.png" and message.attempt == 1:
        raise BusyError("out of memory")
    if picture == "broken.png":
        raise ValueError("not a picture")


def work(mq: menzil.Menzil) -> None:
    """Handle what there is, in batches; a batch is settled in one or two statements."""
    while messages := mq.dequeue(limit=100, lease=30, channels="pictures"):
        done, failed = [], []
        for message in messages:
            try:
                resize(message)
            except BusyError as error:
                failed.append((message, menzil.Fail(str(error), retry=0)))
            except Exception as error:
                failed.append((message, menzil.Fail(str(error), retry=False)))
            else:
                done.append(message)
        names = {message.id: message.payload["picture"] for message in messages}
        for answer in [*mq.complete_many(done), *mq.fail_many(failed)]:
            print(f"{names[answer.id]}: {answer.outcome}")


with menzil.Menzil() as mq:
    mq.channel_set("pictures")
    mq.send_batch("pictures", [{"picture": name} for name in ("small.png", "large.png", "broken.png")])
    work(mq)
    with psycopg.connect(mq.dsn) as conn:
        query = (
            "select payload ->> 'picture', last_error from menzil.dlq where endpoint_name = 'pictures' order by id desc"
        )
        print("dead letter:", *conn.execute(query).fetchone())
