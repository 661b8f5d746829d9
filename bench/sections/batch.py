"""send_batch of 1,000 by one client, against COPY and against the life cycle L."""

from __future__ import annotations

from bench.loads import bare, queue
from bench.readings import Series, between
from bench.server import CHANNEL
from bench.session import Session

SIZE = 1_000


def run(session: Session) -> None:
    """All of them in turn, a fresh database for each repeat."""
    ours, client, copy = Series(), Series(), Series()
    for _ in session.repeat():
        dsn = session.server.database()
        before = session.life_cycle(dsn)
        batch = session.crew.run(queue.send_batch, dsn, session.seconds, channel=CHANNEL, size=SIZE)
        easy = session.crew.run(queue.send_batch_by_client, dsn, session.seconds, channel=CHANNEL, size=SIZE)
        copied = session.crew.run(bare.copy, dsn, session.seconds, size=SIZE)
        cycle = between(before, session.life_cycle(dsn))
        ours.add(batch.reading(), cycle)
        client.add(easy.reading(), cycle)
        copy.add(batch.reading(), copied.reading())
        session.say(
            f"send_batch {batch.rate:,.0f}/s, Menzil.send_batch {easy.rate:,.0f}/s, COPY {copied.rate:,.0f}/s, "
            f"L {cycle.rate:,.0f}/s"
        )
    session.figure("send_batch(1000) / L", ours.ratios(), at_least=1.0, beside=ours.company("messages/s", "L"))
    # The server processes behind the client's pool are not seen, so there is no ratio by processor time.
    rates = {name: value for name, value in client.company("messages/s", "L").items() if name != "by CPU"}
    session.figure("Menzil.send_batch(1000) / L", client.ratios(), beside=rates)
    session.figure("send_batch(1000) / COPY(1000)", copy.ratios(), beside=copy.company("messages/s", "COPY rows/s"))
