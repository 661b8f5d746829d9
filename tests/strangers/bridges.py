"""Strangers that leave a call of a bridge open.

No role of the crowd may wait for them. Which calls for the same bridge wait is said by the words below, and
test_bridges.py tries all of them.
"""

from __future__ import annotations

from tests.strangers.words import Group, Stranger, Wait

_CONFIG = """'{"host": "localhost", "stream": "s", "start": "earliest", "auth": {"password": "hush"}}'"""
NEW = f"select menzil.bridge_create('bridge{{n}}', 'redis', {_CONFIG}, '{{own}}')"
_PUBLISHES = f"select menzil.bridge_create('bridge{{n}}', 'redis', {_CONFIG}, null, 'thing.done')"
BEGUN = "select menzil.bridge_begin('bridge{n}', 's', '0-0')"
OPENED = "select menzil.bridge_open('bridge{n}', 'one', 'host', 1, '0')"
#: Two messages and a dead letter.
TAKE = "select menzil.bridge_take('bridge{n}', 's', '0-0', '3-0', array['1', '2', 'no JSON'])"
HEARTBEAT = """select menzil.bridge_heartbeat('bridge{n}', 'one', null, '{"s": 1}')"""


def _besides(words: str) -> tuple[Wait, ...]:
    return (Wait((), f"all go on, but for {words}, until it ends"),)


#: Its row of bridge_position is locked, so a second process waits, and then finds another position.
PARTITION = _besides("`bridge_take`, `bridge_begin` and `bridge_seek` of the same partition, and `bridge_drop`")
NEW_PARTITION = _besides("`bridge_begin` of the same partition, and `bridge_drop`")
PROCESS = _besides("calls of the same process that name its instance, and `bridge_drop`")
NAME = _besides("`bridge_create` of the same name")
BRIDGE = _besides("administrators who change the same bridge")
SEEK = _besides("`bridge_take` and `bridge_begin` of the same partition, and administrators who change the same bridge")
ALL = _besides("processes that run the same bridge, and administrators who change it")


def _held(name: str, waits: tuple[Wait, ...], *calls: str, role: str = "admin", new: str = NEW) -> Stranger:
    """A call for a bridge of its own that has been opened and has begun."""
    return Stranger(name, calls, role, before=(new, BEGUN, OPENED), waits=waits)


BRIDGES = Group(
    "Bridges",
    (
        _held("`bridge_take`", PARTITION, TAKE, role="worker"),
        _held("`bridge_take` of a bridge that publishes", PARTITION, TAKE, role="worker", new=_PUBLISHES),
        _held("`bridge_begin`", PARTITION, BEGUN, role="worker"),
        _held("`bridge_begin` of a new partition", NEW_PARTITION, BEGUN.replace("'s'", "'new'"), role="worker"),
        _held("`bridge_open`", PROCESS, OPENED, OPENED.replace("one", "new"), role="worker"),
        _held("`bridge_heartbeat`", PROCESS, HEARTBEAT, role="worker"),
        _held("`bridge_close`", PROCESS, "select menzil.bridge_close('bridge{n}', 'one')", role="worker"),
        Stranger("`bridge_create`", (NEW,), waits=NAME),
        Stranger("`bridge_create` of a bridge that publishes", (_PUBLISHES,), waits=NAME),
        _held("`bridge_alter`", BRIDGE, f"select menzil.bridge_alter('bridge{{n}}', {_CONFIG}, 'plain')"),
        _held("`bridge_pause`", BRIDGE, "select menzil.bridge_pause('bridge{n}')"),
        Stranger(
            "`bridge_resume`",
            ("select menzil.bridge_resume('bridge{n}')",),
            before=(NEW, BEGUN, OPENED, "select menzil.bridge_pause('bridge{n}')"),
            waits=BRIDGE,
        ),
        _held("`bridge_seek`", SEEK, "select menzil.bridge_seek('bridge{n}', 's', '7-0')"),
        _held("`bridge_drop`", ALL, "select menzil.bridge_drop('bridge{n}')"),
    ),
)
