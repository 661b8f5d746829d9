"""The pages do what they say: their blocks run one after the other and print what stands below them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from menzil.embedded.binaries import find
from tests.docs.blocks import PAGES, ROOT, blocks, without_spark
from tests.docs.parts import PARTS
from tests.docs.running import Run, node_modules
from tests.docs.stages import STAGES

#: Pages whose blocks other tests run, or compare with examples that they run.
ELSEWHERE = {
    "docs/tutorials/first-message.md": "tests/integration/test_examples.py",
    "docs/tutorials/fastapi.md": "tests/integration/test_walks.py",
    "docs/tutorials/django.md": "tests/integration/test_walks.py",
    "docs/tutorials/operator.md": "tests/integration/test_walks.py",
    "docs/tutorials/spark.md": "tests/spark/test_tutorial.py",
    "docs/how-to/stream-from-the-queue.md": "tests/spark/test_stream_page.py",
    "docs/how-to/deliver-to-rabbitmq.md": "tests/brokers/amqp/test_amqp_working.py",
    "docs/how-to/test-your-handlers.md": "tests/testing/test_plugin.py",
    "docs/how-to/use-django.md": "tests/integration/django/test_django.py",
    "docs/how-to/use-fastapi.md": "tests/contrib/test_pages.py",
    "docs/how-to/use-sqlalchemy.md": "tests/contrib/test_pages.py",
}
#: What a reader of a page has before the first block: an SQL text.
BEFORE = {
    "docs/how-to/find-out-why-a-message-waits.md": """
        select menzil.channel_set('billing'), setval('menzil.message_id', 41);
        select menzil.send_with_options('billing', '{"order": 1001}', p_ordering_key => 'customer-7',
          p_idempotency_key => 'order-1001', p_correlation_id => '6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11');
        select menzil.send_with_options('billing', '{}', p_priority => 9) from generate_series(1, 310)""",
    "docs/how-to/read-the-report.md": """
        select menzil.channel_set('billing');
        select menzil.send_batch('billing', array_fill('{}'::jsonb, array[10]));
        select menzil.message_complete(id, num_attempts) from menzil.message_dequeue(60000, 10)""",
    "docs/how-to/run-a-plan.md": """
        alter table menzil.plan alter id restart with 7;
        select menzil.channel_set('billing');
        select menzil.send_batch('billing', array_fill('{}'::jsonb, array[1200]));
        select count(*)
          from (select array_agg(id) as ids, array_agg(num_attempts) as tries
                  from menzil.message_dequeue(60000, 1200)) taken,
               menzil.message_fail(ids, tries, array_fill('HTTP 503'::text, array[1200]),
                                   p_permanents => array_fill(true, array[1200]))""",
    "docs/how-to/serve-several-databases.md": "select menzil.channel_set('orders')",
    "docs/how-to/trace-through-the-queue.md": """
        select menzil.channel_set('billing'), setval('menzil.message_id', 41)""",
    "docs/how-to/copy-a-database.md": """
        select menzil.channel_set('emails');
        select menzil.create_endpoint('partner', 'http', '{"url": "https://partner.example/hooks"}');
        select menzil.schedule_create('nightly', '0 3 * * *', 'UTC', 'emails', '{}');
        select menzil.disown()""",
    "docs/how-to/recover-an-endpoint.md": """
        select menzil.create_endpoint('partner', 'http', '{"url": "https://partner.example/hooks"}');
        select menzil.set_retry_policy('partner', '{"max_retries": 0}');
        select menzil.send_batch('partner', array['{"order": 1}', '{"order": 2}']::jsonb[]);
        select menzil.message_fail(id, num_attempts, 'HTTP 503 Service Unavailable')
          from menzil.message_dequeue(60000, 10, p_endpoints => true)""",
    "docs/reference/events.md": """
        create table orders (id integer);
        select menzil.channel_set('billing'), menzil.channel_set('turkey-team')""",
    "docs/reference/python.md": "create table orders (id integer)",
    "docs/reference/schedules.md": "select menzil.channel_set('reports')",
    "docs/reference/sql.md": "create table orders (id integer)",
}
NAMES = {str(page.relative_to(ROOT)): page for page in PAGES}
PROGRAMS = ("sql", "sh", "python", "js")


def to_run(page: Path) -> bool:
    return any(block.kind in PROGRAMS and not block.reason for block in without_spark(page))


RUN = sorted(name for name, page in NAMES.items() if to_run(page) and name not in ELSEWHERE)


def test_every_page_that_is_not_run_here_is_there_and_has_its_test() -> None:
    assert [name for name in ELSEWHERE if not to_run(NAMES[name])] == []
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []
    assert [test for name, test in ELSEWHERE.items() if Path(name).stem not in (ROOT / test).read_text()] == []
    assert (BEFORE.keys() | STAGES.keys()) - set(RUN) == set()
    assert len(RUN) >= 35


def test_a_block_that_is_not_run_says_why_and_the_tests_that_it_names_are_there() -> None:
    reasons = [block.reason for page in PAGES for block in blocks(page) if block.reason]
    named = [test for reason in reasons for test in re.findall(r"(?:tests|tools)/[\w/]+\.py", reason)]
    assert [test for test in named if not (ROOT / test).exists()] == []
    assert len(named) >= 15


def test_a_block_without_a_word_behind_its_fence_is_what_a_program_printed() -> None:
    typed = re.compile(r"(menzil|python|pytest|pip|make|psql|[A-Z_]+=\S+) ")
    bare = [(name, block.line) for name, page in NAMES.items() for block in blocks(page) if not block.kind
            and typed.match(block.text)]  # fmt: skip
    assert bare == []


@pytest.fixture
def roles(server) -> Iterator[None]:
    """Roles belong to the server: those that a page makes leave it with the page."""
    names = "select rolname from pg_roles"
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        before = set(conn.execute(names))
        yield
        for (name,) in set(conn.execute(names)) - before:
            conn.execute(f'drop role "{name}"')


@pytest.mark.parametrize("name", RUN)
@pytest.mark.usefixtures("roles")
def test_a_page_does_what_it_says(
    name: str, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    if not (find().bin / "psql").exists():
        pytest.skip("there is no psql beside these binaries")
    monkeypatch.setenv("MENZIL_DSN", db)
    found = without_spark(NAMES[name])
    modules = None
    if any(block.kind == "js" for block in found):
        assert pytestconfig.cache is not None
        modules = node_modules(pytestconfig.cache.mkdir("node"))
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(BEFORE.get(name, "select 1"))
    run = Run(db, tmp_path, modules)
    run.parts = PARTS
    try:
        with STAGES[name](run) if name in STAGES else contextlib.nullcontext():
            for block in found:
                run.block(block)
    finally:
        with psycopg.connect(db, autocommit=True) as conn:
            # Roles that the page made may own rights in this database.
            made = conn.execute("select rolname from pg_roles where rolname like 'shop%'").fetchall()
            for (role,) in made:
                conn.execute(f'drop owned by "{role}"')
