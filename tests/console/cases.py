"""Every act with fields that it takes, what it leaves in the log, and the acts that its last page offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.console.furnished import Furnished

CREATE = "endpoint-create"
LIMITS = {"max_concurrency": "2", "max_size": "none", "release_count": "1", "interval": "0", "on_dead": "continue"}
SHOP = '{"url": "https://shop.example/in", "headers": {"Authorization": "Bearer it\'s"}}'
ALTERED = '{"url": "https://new.example/in"}'
HOURLY = {
    "schedule": "hourly", "cron": "0 * * * *", "time_zone": "Europe/Istanbul", "channel": "imports",
    "payload": '{"n": 1.10}', "priority": "2", "ordering_key": "it's", "expires_after": "90.5",
    "headers": '{"X-A": "b c"}', "metadata": '{"m": [1.50]}', "paused": "on",
}  # fmt: skip
SEND = {
    "channel": "imports", "payload": '{"a": 1.50}', "priority": "3", "ordering_key": "it's", "delay": "3600",
    "expires_in": "7200.5", "correlation_id": "6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a12", "headers": '{"X-A": "b=c"}',
    "metadata": '{"m": 1.10}', "idempotency_key": "once only",
}  # fmt: skip
DRAFT = """select menzil.plan_create('redrive', '{"endpoint": "crm"}')"""


@dataclass
class Case:
    """`first` is SQL that brings about what the act is for; `undo` takes it back, `after` follows it."""

    act: str
    given: dict[str, str] | Callable[[Furnished], dict[str, str]]
    event: str | None
    undo: str | None = None
    after: str | None = None
    says: tuple[str, ...] = ()
    first: str = ""
    #: Views whose rows an undo does not bring back, with the reason in the case.
    leaves: tuple[str, ...] = field(default=())

    def fields(self, ids: Furnished) -> dict[str, str]:
        return self.given(ids) if callable(self.given) else self.given


CASES = [
    Case("message-retry-now", lambda ids: {"id": str(ids.scheduled)}, "message.hurried"),
    Case("message-redrive", lambda ids: {"id": str(ids.dead)}, "redrive", "message-take-back"),
    Case("message-take-back", lambda ids: {"id": str(ids.dead)}, "redrive.taken_back", None, "message-redrive",
         first="select menzil.redrive_message(d.id) from menzil.dlq d where d.original_message_id = {dead}"),
    Case("message-replay", lambda ids: {"id": str(ids.completed)}, "replay", "message-cancel", says=("second time",)),
    Case("message-cancel", lambda ids: {"id": str(ids.scheduled)}, "act.message-cancel", None, "message-replay"),
    Case("message-erase", lambda ids: {"id": str(ids.completed)}, "message.erased", says=("no undo",)),
    Case("channel-pause", {"channel": "billing"}, "channel.paused", "channel-resume"),
    Case("channel-resume", {"channel": "billing"}, "channel.resumed", "channel-pause",
         first="select menzil.channel_pause('billing')"),
    Case("channel-limits", {"channel": "billing", **LIMITS}, "channel.changed", "channel-limits",
         says=("5 are in flight: 3 will finish, and nothing starts until fewer than 2 are.",)),
    Case("channel-purge", {"channel": "mail"}, "channel.purged", says=("100",)),
    Case("bridge-resume", {"bridge": "orders"}, "bridge.resumed", "bridge-pause", says=("No process runs it",)),
    Case("bridge-pause", {"bridge": "orders"}, "bridge.paused", "bridge-resume", says=("takes no records",),
         first="select menzil.bridge_resume('orders')"),
    Case("endpoint-disable", {"endpoint": "warehouse"}, "endpoint.disabled", "endpoint-enable"),
    Case("endpoint-enable", {"endpoint": "warehouse"}, "endpoint.enabled", "endpoint-disable",
         first="select menzil.disable_endpoint('warehouse')"),
    Case("endpoint-reset", {"endpoint": "crm"}, None),
    Case("endpoint-test", {"endpoint": "crm"}, "act.endpoint-test", "message-cancel"),
    Case(CREATE, {"endpoint": "shop", "protocol": "http", "config": SHOP}, "endpoint.created", "endpoint-drop"),
    Case("endpoint-drop", {"endpoint": "shop two"}, "endpoint.dropped",
         first="select menzil.create_endpoint('shop two', 'http', '{\"url\": \"https://two.example\"}')"),
    Case("endpoint-alter", {"endpoint": "warehouse", "config": ALTERED, "retry_policy": '{"max_retries": 2}'},
         "endpoint.altered", "endpoint-alter", says=("https://wms.example.com/in", "https://new.example/in")),
    Case("endpoint-rotate", {"endpoint": "crm"}, "endpoint.altered", None, "endpoint-rotate-finish"),
    Case("endpoint-rotate-finish", {"endpoint": "crm"}, "endpoint.altered",
         first="""select menzil.alter_endpoint('crm', jsonb_set(e.config, '{signing}', '{"secrets":
           ["whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY3",
            "whsec_YUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY3"]}')
           #- '{headers,Authorization}') from menzil.endpoints e where e.name = 'crm'"""),
    Case("schedule-create", HOURLY, "schedule.created", "schedule-drop", says=("Next slots:", "once it is resumed")),
    Case("schedule-pause", {"schedule": "tick"}, "schedule.paused", "schedule-resume"),
    Case("schedule-resume", {"schedule": "tick"}, "schedule.resumed", "schedule-pause",
         first="select menzil.schedule_pause('tick')"),
    Case("schedule-run", {"schedule": "rich"}, "act.schedule-run", "message-cancel",
         first="""select menzil.schedule_create('rich', '5 4 * * 1-5', 'Europe/Oslo', 'imports', '{"n": 1.10}', 3,
           'key', interval '90.5 s', '{"X-A": "b c"}', '{"m": [1.50]}');
           select menzil.schedule_pause('rich')"""),
    Case("schedule-drop", {"schedule": "rich"}, "schedule.dropped", "schedule-create"),
    Case("setting-set", {"setting": "http_allowed_networks", "value": "10.0.0.0/8"}, "setting.changed", "setting-set"),
    Case("send", SEND, "act.send", "message-cancel", says=("Menzil(dsn).send(",)),
    Case("publish", {"event_type": "order.paid", "payload": '{"order": 1, "country": "NL"}'}, "act.publish",
         says=("crm",)),
    Case("plan-redrive", {"endpoint": "crm", "rate": "5", "note": "after the outage"}, "plan.created",
         after="plan-run"),
    Case("plan-replay", {"channel": "mail", "since": "-2h", "status": "completed"}, "plan.created", None, "plan-run"),
    Case("plan-cancel", {"channel": "billing"}, "plan.created", None, "plan-run"),
    # A plan that was stopped stays in the list of plans; what it made is gone.
    Case("plan-run", {"plan": "{plan}"}, "plan.started", "plan-take-back", first=DRAFT, leaves=("plans",)),
    Case("plan-pause", {"plan": "{plan}"}, "plan.paused", "plan-run",
         first=DRAFT + "; select menzil.plan_run(max(p.id)) from menzil.plans p"),
    Case("plan-stop", {"plan": "{plan}"}, "plan.stopped", None, "plan-take-back", first=DRAFT),
    Case("plan-take-back", {"plan": "{plan}"}, "plan.stopped", first=DRAFT),
    Case("channel-release", {"channel": "reports"}, "channel.released"),
]  # fmt: skip
