"""The table of strangers. The matrix runs it, and docs/explanation/strangers.md shows it.

Strangers of one group are held at the same time, unless the group says that each is held alone.
"""

from __future__ import annotations

from tests.strangers.bridges import BRIDGES
from tests.strangers.words import ITS_CHANNEL, ITS_ENDPOINT, NOT_AT_ALL, Group, Stranger, Wait

_EACH = """
  do $$ declare r record; begin
    for r in select c.oid::regclass as name from pg_class c
              where c.relnamespace = 'menzil'::regnamespace and c.relkind in ({kinds}) loop
      execute format('select count(*) from %s', r.name);
    end loop;
  end $$"""
_ALL_VIEWS, _ALL_TABLES = _EACH.replace("{kinds}", "'v'"), _EACH.replace("{kinds}", "'r', 'p'")
# The same form key: the same plan. So slow that workers do not end it.
_PLAN = """menzil.plan_create('<kind>', '{"channel": "plain"}', <rate>, p_key => 'form{n}')"""
_CONFIG = """'{"url": "https://example.org/"}'"""
_ITS_LANES = (
    Wait(
        (),
        "consumers of the lanes it holds and cancels in them, until it ends: lanes it took messages from, "
        "and lanes whose news it folded",
    ),
)


def _calls(*calls: str | tuple[str, tuple[Wait, ...]], role: str = "admin") -> tuple[Stranger, ...]:
    """One open transaction for each call. What stands behind -- is added to its name."""
    made = []
    for call, waits in ((call, NOT_AT_ALL) if isinstance(call, str) else call for call in calls):
        text, _, name = call.partition(" -- ")
        made.append(
            Stranger(f"`{text.split('(')[0]}`{name and ' '}{name}", (f"select menzil.{text}",), role, waits=waits)
        )
    return tuple(made)


def _of_plan(call: str, kind: str) -> str:
    """A call with the plan of this stranger in the place of <plan>."""
    plan = _PLAN.replace("<kind>", kind).replace("<rate>", "null" if kind == "cancel" else "0.01")
    return f"select menzil.{call}".replace("<plan>", plan)


READERS = Group(
    "Readers",
    (
        Stranger("REPEATABLE READ reader of every view", (_ALL_VIEWS,), "owner", "repeatable read"),
        Stranger("REPEATABLE READ reader of every table", (_ALL_TABLES,), "owner", "repeatable read"),
        Stranger("SERIALIZABLE reader of every view and table", (_ALL_VIEWS, _ALL_TABLES), "owner", "serializable"),
        Stranger(
            "health polled in one transaction by a monitor",
            role="monitor",
            # Separate statements: one with all of them would multiply their rows.
            again="".join(
                f"select * from menzil.{call};"
                for call in (
                    "get_endpoint_health()",
                    "metrics()",
                    "health_check()",
                    "get_worker_status()",
                    "dlq_summary()",
                    "channel_state()",
                    "turns(5)",
                )
            ),
        ),
        Stranger(
            "`select … for update` on every row of `menzil.endpoints`, one of which answers 410 and is to be disabled",
            ("select * from menzil.endpoints for update",),
            then=("select menzil.send_batch('{gone}', array_fill('{}'::jsonb, array[40]))",),
        ),
        Stranger(
            "`message_peek`, `message_family`, `dlq_causes`, `archive_months`, `feed_position`, `plan_outcome` "
            "and others that look",
            (
                "select menzil.plan_of(max(id)) from menzil.queue",
                "select * from menzil.plans p, menzil.plan_outcome(p.id)",
                "select * from menzil.plans p, menzil.plan_targets(p.id)",
                "select * from menzil.message_peek('plain')",
                "select menzil.message_id_at(now()), menzil.newest_try(), count(*) from menzil.messages_with_key('k')",
                "select * from menzil.messages_with_correlation(gen_random_uuid())",
                "select * from menzil.channel_window('plain')",
                "select * from menzil.pulse_of()",
                "select * from menzil.pulse_totals()",
                "select menzil.message_family(p.id) from menzil.message_peek('plain') p",
                "select * from menzil.dlq_causes()",
                "select * from menzil.dlq_deaths(now() - interval '1 hour', '1 min')",
                "select * from menzil.messages_in_window(9223372036854775807, 1000, 100, 'plain')",
                "select * from menzil.archive_months()",
                "select * from menzil.feed_position('archive')",
            ),
        ),
        Stranger(
            "a login without any right on menzil, with every advisory lock it can compute",
            (
                "select pg_advisory_lock(n) from generate_series(-100, 1000) n",
                "select pg_advisory_lock(0, n), pg_advisory_lock(n, 0) from generate_series(0, 100) n",
                "select pg_advisory_lock(hashtextextended('k' || n, s)) "
                "from generate_series(0, 10) n, generate_series(0, 20) s",
                "select pg_advisory_lock(c.oid::bigint), pg_advisory_lock(c.oid::integer, 0) "
                "from pg_class c join pg_namespace s on s.oid = c.relnamespace and s.nspname = 'menzil'",
                "select pg_advisory_lock(hashtext(c.relname)) from pg_class c",
            ),
            "outsider",
        ),
        Stranger("`pg_dump` that is held by a full pipe", role="owner", dump=True),
        Stranger("a write to a table of its own", ("insert into public.mine values (1)",), "outsider"),
    ),
)

CHANNELS = Group(
    "Channels and endpoints",
    (
        *_calls(
            ("channel_set('{own}', 3) -- with a concurrency", ITS_CHANNEL),
            ("channel_set('{own}', null, 1000, 10, 1000) -- with a size and a rate", ITS_CHANNEL),
            "channel_set('new{n}') -- of a new channel",
            ("channel_pause('{own}')", ITS_CHANNEL),
            ("channel_purge('{own}')", ITS_CHANNEL),
            "channel_release('{own}')",
            f"create_endpoint('new{{n}}', 'http', {_CONFIG})",
            f"alter_endpoint('{{hook}}', {_CONFIG})",
            ("disable_endpoint('{hook}')", ITS_ENDPOINT),
            ("purge_endpoint('{hook}')", ITS_ENDPOINT),
            ("update_circuit_breaker({id}, true)", ITS_ENDPOINT),
            ("reset_circuit_breaker('{hook}')", ITS_ENDPOINT),
            """set_retry_policy('{hook}', '{"max_retries": 3}') -- of an endpoint""",
            """set_retry_policy('{own}', '{"max_retries": 3}') -- of a channel""",
        ),
        Stranger(
            "`alter_endpoint` with a limit",
            ("""select menzil.alter_endpoint('{hook}', '{"url": "https://example.org/", "max_concurrency": 2}')""",),
            waits=ITS_ENDPOINT,
        ),
        Stranger(
            "`channel_resume`",
            ("select menzil.channel_resume('{own}')",),
            before=("select menzil.channel_pause('{own}')",),
            waits=ITS_CHANNEL,
            rests=True,
        ),
        Stranger(
            "`enable_endpoint`",
            ("select menzil.enable_endpoint('{hook}')",),
            before=("select menzil.disable_endpoint('{hook}')",),
            waits=ITS_ENDPOINT,
            rests=True,
        ),
        Stranger("`drop_endpoint`", ("select menzil.drop_endpoint('{hook}')",), rests=True),
    ),
)

ADMINS = Group(
    "Everything else an administrator does",
    _calls(
        "set_setting('retry_base_delay', '11')",
        "disown(), menzil.adopt() -- and `adopt`",
        "create_event_type('new.type{n}')",
        "subscribe('thing.done', '{own}')",
        "schedule_create('new{n}', '* * * * *', 'UTC', 'plain', '{}')",
        "schedule_pause('often')",
        "replay_range((select id from menzil.channels where name = 'plain'), now() - interval '1 hour', now())",
        "replay_message({ended})",
        "redrive_endpoint('{own}')",
        "redrive_all()",
        """plan_create('redrive', '{"all": true}')""",
        "message_cancel({later}) -- of a scheduled message",
        "message_cancel(p.id) from menzil.message_peek('graded', 5) p -- of messages that are next",
        "message_retry_now({later})",
        "message_erase({ended})",
        "note_act('send', 'message', '1')",
        """register_protocol('new{n}', '[{"path": "topic", "kind": "text", "minimum": 1, "maximum": 9}]')""",
        "feed_forget('reader')",
    )
    + tuple(
        Stranger(
            f"`{call}`",
            (f"select menzil.{call}('type{{n}}'{rest})",),
            before=(
                "select menzil.create_event_type('type{n}')",
                "select menzil.subscribe('type{n}', 'plain')",
                "select menzil.publish('type{n}', '{}')",
            ),
        )
        for call, rest in (("unsubscribe", ", 'plain'"), ("drop_event_type", ""))
    )
    + tuple(
        Stranger(
            name,
            (_of_plan(call, kind),),
            before=tuple(_of_plan(each, kind) for each in before),
        )
        for name, kind, before, call in (
            ("`plan_run`", "replay", (), "plan_run(<plan>)"),
            ("`plan_pause`", "replay", ("plan_run(<plan>)",), "plan_pause(<plan>)"),
            ("`plan_step` of a replay", "replay", ("plan_run(<plan>)",), "plan_step(<plan>, 50)"),
            ("`plan_step` of a cancel", "cancel", (), "plan_run(<plan>), menzil.plan_step(<plan>, 50)"),
            (
                "`plan_stop` with take back",
                "replay",
                ("plan_run(<plan>)", "plan_step(<plan>, 50)"),
                "plan_stop(<plan>, true)",
            ),
        )
    ),
)

SENDERS = Group(
    "Senders and pipelines",
    (
        Stranger(
            "a send of 10,000",
            ("select menzil.send_batch('plain', array_fill('{}'::jsonb, array[10000]))",),
            "application",
        ),
        Stranger(
            "sends to every kind of channel",
            (
                "select menzil.send(c, '{}') "
                "from string_to_table('plain graded limited rated sized timed expiring hook narrow_hook', ' ') c",
                "select menzil.send_with_options('keyed', '{}', p_ordering_key => 'k1')",
                "select menzil.send_with_options('single', '{}', p_idempotency_key => 'a key of its own')",
                "select menzil.publish('thing.done', '{}')",
                "select menzil.inbox_claim('reader', 'a')",
            ),
            "application",
        ),
        Stranger("`bulk_open`", ("select menzil.bulk_open('open{n}')",), "pipeline"),
        Stranger(
            "`bulk_commit` of 1,000 rows",
            (
                "select menzil.bulk_open('sent{n}')",
                """do $$ declare v text := (menzil.bulk_open('sent{n}')).staging; begin
                     execute format('insert into menzil.%I (token, n, endpoint, payload)
                       select ''a'', n, ''plain'', ''{}'' from generate_series(0, 999) n', v);
               end $$""",
                "select menzil.bulk_commit('sent{n}', '{a}', '{1000}')",
            ),
            "pipeline",
        ),
        Stranger(
            "`bulk_abort`",
            ("select menzil.bulk_abort('aborted{n}')",),
            "pipeline",
            before=("select menzil.bulk_open('aborted{n}')",),
        ),
        Stranger("`feed_advance`", ("select menzil.feed_advance('reader', 'archive', '10', 0)",), "pipeline"),
        Stranger("`pipeline_run_begin`", ("select menzil.pipeline_run_begin('export')",), "pipeline"),
        Stranger(
            "a settle of one message",
            ("select menzil.message_complete(l.lo_id, l.attempt) from menzil.lease l where l.worker = 'settler{n}'",),
            "owner",
            before=(
                "select menzil.send_batch('plain', array_fill('{}'::jsonb, array[5]))",
                "select * from menzil.message_dequeue(600000, 5, '{plain}', 'settler{n}')",
            ),
        ),
    ),
)

HOUSEKEEPING = Group(
    "Housekeeping",
    _calls(
        "maintain_archive_partitions(3) -- while no month is missing",
        "cleanup_old_archive_partitions() -- while no month is old",
        "archive_completed_messages(0) -- while no month is missing",
        "cleanup_attempts()",
        "cleanup_dlq()",
        "cleanup_event_log()",
        "cleanup_used_keys()",
        "cleanup_inbox()",
        "cleanup_workers()",
        "reap_bulk_sends()",
        "recover_stale_messages()",
        "schedule_fire_due()",
        "job_run('attempts') -- of attempts",
        "job_run('workers') -- of workers",
        "worker_hello('stranger', 'host', 1, '0')",
        "job_claim('stranger')",
        role="worker",
    ),
)

CONSUMERS = Group(
    "Consumers",
    (
        Stranger(
            "a dequeue of one channel",
            ("select * from menzil.message_dequeue(60000, 5, '{{own}}')",),
            "worker",
            waits=_ITS_LANES,
            holds_lanes=True,
        ),
        Stranger(
            "a dequeue of all channels",
            ("select * from menzil.message_dequeue(60000, 100)",),
            "worker",
            waits=_ITS_LANES,
            holds_lanes=True,
        ),
        Stranger(
            "a dequeue of all endpoints",
            ("select * from menzil.message_dequeue(60000, 100, p_endpoints => true)",),
            "worker",
            waits=_ITS_LANES,
            holds_lanes=True,
        ),
        Stranger(
            "dequeues over and over in one transaction, with deep looks and chores",
            again="select * from menzil.message_dequeue(60000, 5, '{{own}}')",
            role="worker",
            waits=_ITS_LANES,
            holds_lanes=True,
        ),
        Stranger(
            "`mark_expired_messages`",
            ("select menzil.mark_expired_messages()",),
            "worker",
            waits=_ITS_LANES,
            holds_lanes=True,
        ),
        Stranger("`maintain`", ("select menzil.maintain()",), "worker", waits=_ITS_LANES, holds_lanes=True),
    ),
    alone=True,
)

MAINTENANCE = Group(
    "Maintenance of the database",
    (
        Stranger("VACUUM of every table, over and over", ("vacuum",), "owner", loop=True),
        Stranger("ANALYZE of every table, over and over", ("analyze",), "owner", loop=True),
        Stranger(
            "VACUUM FULL of a table that no message passes",
            ("vacuum full menzil.inbox", "vacuum full menzil.bulk_send"),
            "owner",
            loop=True,
        ),
        Stranger(
            "REINDEX CONCURRENTLY of tables that messages pass",
            tuple(f"reindex table concurrently menzil.{name}" for name in ("run", "line", "lane", "lease", "done")),
            "owner",
            loop=True,
        ),
        Stranger(
            "CREATE INDEX CONCURRENTLY on the month",
            (
                "create index concurrently mine on menzil.archive_default (created_at)",
                "drop index concurrently menzil.mine",
            ),
            "owner",
            loop=True,
        ),
        Stranger(
            "ALTER TABLE of the event log",
            ("alter table menzil.event add column mine text",),
            "owner",
            waits=(Wait(("watch",), "`message_life`, which reads the event log, until it ends", ("message_life",)),),
        ),
        Stranger("GRANT", ("grant select on menzil.queue to mz_outsider",), "owner"),
    ),
    alone=True,
)

# These need a server with max_prepared_transactions > 0 and wal_level = logical.
TWO_PHASE = Group(
    "Prepared transactions and replication",
    (
        Stranger("a prepared transaction with sends", SENDERS.strangers[1].sql, "application", prepared=True),
        Stranger(
            "a prepared transaction with settles",
            SENDERS.strangers[-1].sql,
            "owner",
            before=SENDERS.strangers[-1].before,
            prepared=True,
        ),
        Stranger(
            "a prepared dequeue",
            CONSUMERS.strangers[0].sql,
            "worker",
            prepared=True,
            waits=_ITS_LANES,
            holds_lanes=True,
        ),
        Stranger(
            "a physical replication slot whose standby is away",
            ("select 1",),
            before=("select pg_create_physical_replication_slot('held{n}', true)",),
            after=("select pg_drop_replication_slot('held{n}')",),
        ),
        Stranger(
            "a logical replication slot whose reader is away",
            ("select 1",),
            before=("select pg_create_logical_replication_slot('held{n}', 'test_decoding')",),
            after=("select pg_drop_replication_slot('held{n}')",),
        ),
        Stranger(
            "a publication of all tables",
            ("select 1",),
            before=("create publication all{n} for all tables",),
            after=("drop publication all{n}",),
        ),
    ),
    alone=True,
)

GROUPS = (READERS, CHANNELS, ADMINS, SENDERS, BRIDGES, HOUSEKEEPING, CONSUMERS, MAINTENANCE)

# What PostgreSQL itself makes others wait for. Nothing is lost, and everything goes on when it ends.
INHERENT = (
    Stranger("`ALTER TABLE menzil.message`", ("alter table menzil.message add column mine integer",), "owner"),
    Stranger("`ALTER TABLE menzil.line`", ("alter table menzil.line add column mine integer",), "owner"),
    Stranger("`rebuild`", ("select menzil.rebuild()",), "owner"),
    Stranger("`REINDEX TABLE menzil.run`", ("reindex table menzil.run",), "owner"),
    Stranger(
        "`maintain_archive_partitions` that makes a month", ("select menzil.maintain_archive_partitions(12)",), "owner"
    ),
    Stranger(
        "`cleanup_old_archive_partitions` that drops a month",
        ("select menzil.cleanup_old_archive_partitions()",),
        "owner",
        before=("select menzil._make_archive_month('2020-01-01 00:00+00')",),
    ),
)
