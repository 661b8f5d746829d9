"""The last scene: how everything stands; and what the receiver says to our accounts."""

from __future__ import annotations

from collections import Counter

from examples.demo.stage import Stage


def standing(stage: Stage) -> None:
    """What an operator on duty looks at."""
    stage.title("How everything stands")
    relief = stage.crew.hands[-1]
    relief.term()
    stage.until(lambda: relief.process.poll() is not None, "the last worker ends")
    stage.check(relief.process.returncode == 0, "the last worker ends well")
    _endpoints(stage)
    _metrics(stage)
    _workers(stage)


def _endpoints(stage: Stage) -> None:
    health = stage.ask(
        """select endpoint_name, enabled, circuit_state, pending_messages + in_flight,
                  extract(epoch from clock_timestamp() - last_success_at)::float
             from menzil.get_endpoint_health() order by last_success_at desc nulls last"""
    )
    for name, enabled, circuit, waiting, ago in health:
        last = "never delivered" if ago is None else f"last success {ago:.1f} s ago"
        stage.say(f"{name:<12} {'enabled' if enabled else 'disabled'}, circuit {circuit}, {waiting} waiting, {last}")
    stage.check({row[2] for row in health} == {"closed"}, "every circuit is closed")


def _metrics(stage: Stage) -> None:
    names = ["queue_depth", "in_flight", "dlq_depth", "workers_alive"]
    rows = stage.ask(
        """select metric_name, metric_value from menzil.metrics()
            where metric_name = any(%s) and labels in ('{}', '{"status": "pending"}')""",
        names,
    )
    found = {name: int(value) for name, value in rows}
    stage.say(f"metrics: {', '.join(f'{name} {found[name]}' for name in names)}")
    stage.check(
        (found["queue_depth"], found["dlq_depth"]) == (0, stage.book.dead()), "metrics know what the book knows"
    )


def _workers(stage: Stage) -> None:
    rows = stage.ask(
        """select worker, status, delivered, failed, extract(epoch from clock_timestamp() - last_heartbeat_at)::float
             from menzil.get_worker_status() order by started_at"""
    )
    for name, status, delivered, failed, ago in rows:
        said = f"{name:<12} {status}, {delivered} delivered, {failed} failed, heard of {ago:.1f} s ago"
        stage.say(said + (" (lost after 30 s)" if status == "alive" else ""))
    ((ended,),) = stage.ask(
        "select count(*) from menzil.archive where status = 'completed' and worker = any(%s)", [row[0] for row in rows]
    )
    stage.check(sum(row[2] for row in rows) == ended, "workers have delivered what the archive says")


def differences(stage: Stage) -> list[str]:
    """What does not add up between the archive and the receiver's own record."""
    if not stage.has_partner:
        return []
    requests = stage.partner.requests()
    accepted = Counter(request.message_id for request in requests if request.accepted)
    completed = dict(
        stage.ask(
            """select a.id, a.channel from menzil.archive a join menzil.endpoints e on e.name = a.channel
                where a.status = 'completed' and e.protocol = 'http'"""
        )
    )
    twice = sum(count > 1 for count in accepted.values())
    stage.say(
        f"the receiver's own record: {len(requests)} requests, {len(accepted)} messages accepted, {twice} of them twice"
    )
    wrong = [
        f"message {key} to {name} is completed, and the receiver never accepted it"
        for key, name in completed.items()
        if not accepted[key]
    ]
    lost = accepted.keys() - completed
    return wrong + [f"message {key} was accepted by the receiver, and is not completed" for key in sorted(lost)]
