"""docs/explanation/strangers.md, made from the table: python -m tests.strangers.page writes it."""

# ruff: noqa: E501 - rows of a table in Markdown cannot be broken

from __future__ import annotations

from pathlib import Path

from tests.strangers.table import GROUPS, INHERENT, TWO_PHASE
from tests.strangers.verdict import HOLD, PATIENCE
from tests.strangers.words import Group

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "strangers.md"

_HEAD = f"""# Who waits for whom

Transactions stay open: a client hangs, a report runs for an hour, an administrator types `begin` and goes to lunch. This page
lists what such a *stranger* can hold up in menzil. `tests/strangers` makes the tables from its own list and checks them: while
senders, consumers, a worker, its jobs, watchers and settlers are at work in a dozen channels, each stranger is held for
{HOLD} seconds, and no role may go without a success for more than {PATIENCE:.0f} second unless the last column says so. Strangers that
hold up nothing are held together, the others one by one. A gap that no lock explains may be the fault of a slow machine. Then the
test measures the gaps without the stranger, and holds the stranger again for longer, up to five times. A role is named if its gap is
each time longer than twice the gap without the stranger. A role that stands still is always noticed, because the stranger is held for
longer than the longest gap that is let pass.

The roles are:

| role | what must go on |
|---|---|
| send | `send`, `send_with_options` with priority, ordering key, schedule, expiry and idempotency key, `send_batch`, `send_many`; also by a role whose default isolation is REPEATABLE READ |
| dequeue, lease | every `message_dequeue` returns, and every channel gives messages: plain, with priorities, limited, rated, with a size limit, with ordering keys, scheduled, expiring |
| deliver | the calls of a worker for endpoints |
| settle | `message_complete`, `message_fail`, `message_defer`, `message_heartbeat`, dead letters |
| jobs | every job of `menzil.jobs`, claimed and done |
| watch | `metrics`, `health_check`, `get_endpoint_health`, `channel_state`, `turns`, also under REPEATABLE READ; `message_status`, `message_why`, `message_life` |
| cancel | `message_cancel` of messages that are scheduled or next |
| work | a real `menzil worker` process calls its handlers, with and without a transaction |

"All go on" means that every one of these roles had its successes in every channel.
"""

_TAIL = """
## What a transaction waits for

These waits are part of what menzil promises, so they have no row above.

| who waits | for what | how long |
|---|---|---|
| a send with an idempotency key | an open transaction that sent the same key to the same channel: its commit decides | until it ends |
| a send with an idempotency key that no message holds any more | an open transaction that forgets the key (`cleanup_used_keys`, `maintain`) or erased the message that had it | until it ends |
| a send whose idempotency key a waiting message has that expired | an open dequeue that holds the lane of that message and may have leased it; then the message keeps its key | at most 50 ms, once a second in a transaction; less for each further lane |
| a settle or heartbeat | an open settle of a message of the same lease; `p_apart` gives every message a lease of its own | until it ends |
| `message_cancel`, `channel_set`, `channel_pause`, `channel_resume`, `channel_purge`, circuit breaker functions | an open dequeue that holds a lane of that channel | until it ends |
| an administrator | another administrator who changes the same channel, endpoint, bridge, schedule, setting or event type | until it ends |
| a dequeue that finds every due lane held by other transactions | one of them | at most 50 ms |
| a settle that disables an endpoint which is gone | a transaction that holds a lane of that endpoint; the next message tells it again | at most 50 ms |
| a job | any lock; it is tried again in its next round | at most half a second for each lock |
| a dequeue, settle or job that writes a line of the event log, for instance when a circuit opens | a transaction that altered the table `menzil.event` | until it ends |

A dequeue folds news of all channels on its way, also if it names some. So it may hold lanes of channels that it does not
serve. Call it in a transaction of its own and commit at once; the client and the worker do.

## What PostgreSQL makes every session wait for

An ACCESS EXCLUSIVE lock on a table that messages pass stops everything that needs the table, until the transaction ends. menzil
takes no such lock on the way of a message. Nothing is lost, no role gets an error, and everything goes on when it ends. There is no
deadlock either: every call locks `message` before one of its months, as `ALTER TABLE menzil.message` does
(`tests/races/test_parent_first.py`). `rebuild` locks the queue as well: it is for an operator whose queue is damaged. That everything
goes on is tested with these:
"""


def _rows(group: Group) -> list[str]:
    return [
        f"| {stranger.name} | {'; '.join(wait.words for wait in stranger.waits) or 'all go on'} |"
        for stranger in group.strangers
    ]


def page() -> str:
    parts = [_HEAD]
    for group in (*GROUPS, TWO_PHASE):
        parts.append(f"\n## {group.title}\n\n| left open by a stranger | who waits |\n|---|---|\n")
        parts.append("\n".join(_rows(group)) + "\n")
    inherent = "\n".join(f"- {stranger.name}" for stranger in INHERENT)
    return "".join(parts) + _TAIL + f"\n{inherent}\n" + _LAST


_LAST = """
The same holds for `ALTER TABLE`, `REINDEX`, `VACUUM FULL`, `TRUNCATE`, `CREATE INDEX` without `CONCURRENTLY` and `LOCK TABLE` on
`message` and its months, `line`, `aside`, `look`, `run`, `lane`, `lease`, `done`, `returned`, `scheduled`, `key_queue`, `expiring`,
`gate`, `channel` and `setting_value`. Months are made and dropped under such a lock as well: the jobs `partitions` and `retention`
do it in short transactions under a lock timeout. Leave it to them, and do not call the functions in a transaction that stays open.
"""


if __name__ == "__main__":
    PAGE.write_text(page())
