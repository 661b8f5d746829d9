"""The log of lines: nothing in it is missed, with any transaction open, and no held lane holds up another one."""

from __future__ import annotations

import pytest

from tests.races.actor import Actor, Lease
from tests.races.pause import pause_before
from tests.races.stage import Stage, poll


def look_at_all(actor: Actor) -> None:
    """The next dequeue takes a full look and writes a proof, and looks back to the beginning of time."""
    actor.run("select setval('menzil.swept_at', 0), setval('menzil.deep_at', 0)")


def dequeue_fully(actor: Actor, limit: int = 1, *channels: str) -> list[Lease]:
    look_at_all(actor)
    return actor.dequeue(limit, *channels)


def proof(actor: Actor) -> tuple[int, set[int]]:
    """How far the newest proof reaches, and which transactions it names as late."""
    [(reach, late)] = actor.run(
        "select folded_to::text::bigint, array(select u.x::text::bigint from unnest(late) u(x))"
        " from menzil.look order by id desc limit 1"
    )
    return reach, set(late)


def xid(actor: Actor) -> int:
    return actor.one("select pg_current_xact_id()::text::bigint")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_open_dequeue_holds_its_lane_and_lines_of_that_lane_are_put_aside_while_others_go_on(stage: Stage, end: str):
    holder, other = stage.hire(), stage.hire()
    held = stage.watcher.send_batch("a", 3)
    stage.sweep()
    holder.begin()
    mine = holder.take(1, "a")
    waiting = [stage.watcher.send("a") for _ in range(5)]
    gone = []
    for _ in range(4):
        sent = stage.watcher.send("b")
        leases = dequeue_fully(other, 10)
        assert [lease.id for lease in leases] == [sent]
        gone += leases
    assert stage.watcher.one("select count(*) from menzil.aside") == 5
    assert stage.watcher.one("select count(*) from menzil.line where rank is not null") == 0
    late = stage.watcher.send("a")
    holder.run(end)
    rest = [*held[len(mine) if end == "commit" else 0 :], *waiting, late]
    assert [lease.id for lease in other.take(len(rest))] == rest
    assert stage.watcher.one("select count(*) from menzil.aside") == 0
    assert stage.nothing_is_ready()


def test_fold_that_finds_a_lane_held_by_another_transaction_leaves_its_lines_and_names_them_in_the_proof(stage: Stage):
    holder, other, sender = stage.hire(), stage.hire(), stage.hire()
    stage.watcher.send("a")
    stage.sweep()
    holder.begin()
    holder.take(1, "a")
    sender.begin()
    number = xid(sender)
    sent = sender.send("a")
    sender.commit()
    assert dequeue_fully(other, 10) == []
    reach, late = proof(stage.watcher)
    assert number < reach
    assert number in late
    assert stage.watcher.run("select first_id from menzil.line where rank is not null") == [(sent,)]
    holder.commit()
    assert [lease.id for lease in other.take(1)] == [sent]


@pytest.mark.parametrize("options", [{}, {"ordering_key": "k"}, {"priority": 7}], ids=["plain", "keyed", "urgent"])
@pytest.mark.parametrize("before", [0, 1])
def test_transaction_that_folds_and_then_sends_loses_nothing(stage: Stage, before: int, options: dict[str, object]):
    """Its own id is not in its own snapshot: the proof that it writes must name it as late."""
    business, consumer = stage.hire(), stage.hire()
    with business.open():
        own = [business.send("a", **options)] if before else []
        number = xid(business)
        stage.watcher.send("b")  # a later transaction that has ended: the proof reaches beyond it
        assert len(dequeue_fully(business, 1, "b")) == 1
        own.append(business.send("a", **options))
        reach, late = proof(business)
        assert number < reach
        assert number in late
    taken = []
    for _ in own:
        leases = consumer.take(1, "a")
        consumer.complete(leases)
        taken += [lease.id for lease in leases]
    assert taken == own


@pytest.mark.parametrize("proofs", [1, 3])
def test_proof_that_is_written_while_a_sender_is_open_does_not_hide_its_lines(stage: Stage, proofs: int):
    sender, consumer = stage.hire(), stage.hire()
    sender.begin()
    own = [sender.send("a")]
    for _ in range(proofs):
        stage.watcher.send("b")
        assert len(dequeue_fully(consumer)) == 1
    own.append(sender.send("a"))
    reach, late = proof(stage.watcher)
    assert xid(sender) < reach
    assert xid(sender) in late
    sender.commit()
    assert [lease.id for lease in consumer.take(2)] == own
    assert stage.nothing_is_ready()


def test_sender_whose_work_is_in_savepoints_is_one_transaction_for_the_proof(stage: Stage):
    sender, consumer = stage.hire(), stage.hire()
    sender.begin()
    sender.run("savepoint s")
    undone = sender.send("a")
    stage.watcher.send("b")
    dequeue_fully(consumer)
    sender.run("rollback to s")
    sender.run("savepoint t")
    own = sender.send("a")
    stage.watcher.send("b")
    dequeue_fully(consumer)
    sender.run("release t")
    sender.commit()
    assert [lease.id for lease in consumer.take(1)] == [own]
    assert stage.nothing_is_ready()
    assert own > undone


def test_proof_of_another_server_hides_nothing(stage: Stage):
    """A dump that was restored into a younger cluster: the proof speaks of transactions that are yet to come."""
    before = stage.watcher.send("a")
    stage.watcher.run(
        "insert into menzil.look (at, folded_to, late) values (now(), '9000000000000', array['8999999999999'::xid8])"
    )
    after = stage.watcher.send("a")
    consumer = stage.hire()
    assert [lease.id for lease in consumer.take(2)] == [before, after]
    reach, _ = proof(stage.watcher)
    assert reach < 9_000_000_000_000
    last = stage.watcher.send("a")
    assert [lease.id for lease in consumer.take(1)] == [last]


def test_more_lines_of_another_server_than_a_look_reads_hide_nothing(stage: Stage):
    """A restore brought lines with ids of the future. A proof that ends among them would hide sends of this server."""
    sender, consumer = stage.hire(), stage.hire()
    with sender.open():
        before = [sender.send("a") for _ in range(2100)]
    stage.watcher.run("update menzil.line set xid = (xid::text::bigint + 200)::text::xid8")
    [first] = dequeue_fully(consumer, 1, "a")
    after = stage.watcher.send("a")
    for _ in range(250):
        xid(stage.watcher)
    taken = [first, *consumer.take(len(before))]
    assert sorted(lease.id for lease in taken) == [*before, after]


@pytest.mark.parametrize(
    ("function", "line"),
    [("_fold", "if v_look.ats is not null then"), ("_fold", "v_rows := menzil._take_lines(v_mine, v_keys);")],
    ids=["before the locks", "before the lines are taken"],
)
def test_vacuum_between_the_look_and_the_taking_of_lines_loses_nothing(stage: Stage, function: str, line: str):
    """Lines that others folded in between are gone, and their places in the table may hold other lines."""
    slow, quick = stage.hire(patient=True), stage.hire()
    ids = [stage.watcher.send("a") for _ in range(3)] + [stage.watcher.send("b") for _ in range(3)]
    pause = pause_before(stage, slow, function, line)
    look_at_all(stage.watcher)
    taking = stage.start(slow.dequeue, 10)
    pause.reached()
    between = dequeue_fully(quick, 2)
    stage.watcher.run("vacuum menzil.line")
    ids += [stage.watcher.send(channel) for channel in "ab"]
    between += dequeue_fully(quick, 2)
    stage.watcher.run("vacuum menzil.line")
    pause.open()
    taken = between + taking.result()
    taken += quick.take(len(ids) - len(taken))
    assert sorted(lease.id for lease in taken) == sorted(ids)
    assert stage.nothing_is_ready()


def test_log_that_is_emptied_under_an_old_snapshot_is_read_from_the_newest_proof(stage: Stage):
    """A held snapshot keeps folded lines alive for VACUUM; nothing that is sent meanwhile is late or lost."""
    old, consumer = stage.hire(), stage.hire()
    old.begin("repeatable read")
    old.run("select count(*) from menzil.line")
    for _ in range(20):
        sent = [stage.watcher.send(channel) for channel in "ab"]
        leases = consumer.take(2)
        assert sorted(lease.id for lease in leases) == sent
        consumer.complete(leases)
    stage.watcher.run("vacuum menzil.line, menzil.lane, menzil.look")
    old.commit()
    assert stage.live() == 0


def test_lines_are_found_by_a_proof_that_could_not_read_them_all(stage: Stage):
    """More lines than one full look reads: the proof reaches as far as it read, and no further."""
    sender, consumer = stage.hire(), stage.hire()
    ids = []
    for _ in range(3):
        with sender.open():
            ids += [sender.send("a") for _ in range(900)]
    assert len(dequeue_fully(consumer, 1, "a")) == 1
    poll(lambda: dequeue_fully(consumer, 1, "b") == [], "another full look")
    assert [lease.id for lease in consumer.take(len(ids) - 1)] == ids[1:]


def test_more_lines_of_one_transaction_for_a_held_lane_than_a_look_reads_stop_no_other_lane(stage: Stage):
    """A look that is filled with lines it cannot fold puts them aside when it meets them again."""
    holder, other = stage.hire(), stage.hire()
    for channel in "ab":
        stage.watcher.send(channel)
    other.complete(other.take(2))
    waiting = [stage.watcher.send("a") for _ in range(2)]
    with holder.open():
        mine = holder.take(1, "a")
        stage.watcher.run("do $$ begin for i in 1 .. 2100 loop perform menzil.send('a', '0'); end loop; end $$")
        sent = stage.watcher.send("b")
        looks = [lease.id for _ in range(5) for lease in dequeue_fully(other, 10)]
        assert looks == [sent]
    ids = [row[0] for row in stage.watcher.run("select id from menzil.queue where status = 'pending' order by id")]
    assert [lease.id for lease in mine] == waiting[:1]
    assert len(ids) == 2101
    assert [lease.id for lease in other.take(2101)] == ids


def test_more_held_lanes_than_a_look_asks_for_do_not_strand_the_lines_of_a_free_lane(stage: Stage):
    """Lines of 120 held lanes lie aside before those of the lane that is free: each look asks for 100 of them."""
    holder, short, other = stage.hire(), stage.hire(), stage.hire()
    names = [f"c{n}" for n in range(120)]
    stage.watcher.run("select menzil.channel_set(u.name) from unnest(%s::text[]) u(name)", [*names, "last"])
    send = "select menzil.send(u.name, '0') from unnest(%s::text[]) u(name)"
    stage.watcher.run(send, [*names, "last"])
    assert len(other.take(121)) == 121
    stage.watcher.run(send, names)
    with holder.open():
        assert len(holder.take(120, *names)) == 120
        stage.watcher.send("last")
        with short.open():
            assert len(short.take(1, "last")) == 1
            stage.watcher.run(send, names)
            sent = stage.watcher.send("last")
            for _ in range(4):
                assert dequeue_fully(other, 10) == []
            assert stage.watcher.one("select count(*) from menzil.aside where rank is not null") == 121
        # Each look asks at random, so the first need not find it.
        taken = [lease.id for _ in range(30) for lease in dequeue_fully(other, 10)]
        assert taken == [sent]
    assert len(other.take(120)) == 120
