"""The pages do what they say: their blocks run one after the other and print what stands below them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from menzil.embedded.binaries import find
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.docs.running import Run, node_modules

#: Pages whose blocks other tests run, or compare with examples that they run.
ELSEWHERE = {
    "README.md": "tests/integration/test_examples.py",
    "docs/tutorials/first-message.md": "tests/integration/test_examples.py",
    "docs/tutorials/fastapi.md": "tests/integration/test_walks.py",
    "docs/tutorials/django.md": "tests/integration/test_walks.py",
    "docs/tutorials/operator.md": "tests/integration/test_walks.py",
    "docs/tutorials/spark.md": "tests/spark/test_tutorial.py",
    "docs/how-to/stream-from-the-queue.md": "tests/spark/test_stream_page.py",
    "docs/how-to/serve-several-databases.md": "tests/integration/several/test_looking.py",
    "docs/how-to/test-your-handlers.md": "tests/testing/test_plugin.py",
    "docs/how-to/use-django.md": "tests/integration/django/test_django.py",
    "docs/how-to/use-fastapi.md": "tests/contrib/test_pages.py",
    "docs/how-to/use-sqlalchemy.md": "tests/contrib/test_pages.py",
}
#: Pages that show parts of what tests run elsewhere under other names; only their grammar is checked.
CHECKED = {
    f"docs/{name}.md"
    for name in (
        "explanation/embedded",
        "explanation/figures",
        "explanation/torture",
        "how-to/deliver-to-nats",
        "how-to/deliver-to-redis",
        "how-to/deploy-the-console",
        "how-to/encrypt-secrets",
        "how-to/find-out-why-a-message-waits",
        "how-to/monitor-with-prometheus",
        "how-to/read-the-lake-with-other-engines",
        "how-to/read-the-report",
        "how-to/replay-from-the-lake",
        "how-to/run-a-plan",
        "how-to/run-on-a-cluster",
        "how-to/send-a-dataframe",
        "how-to/trace-through-the-queue",
        "reference/cli",
        "reference/console",
        "reference/lake",
        "reference/spark",
        "reference/worker",
    )
}
#: What a reader of a page has before the first block: an SQL text.
BEFORE = {
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


def with_programs() -> set[str]:
    return {name for name, page in NAMES.items() if any(block.kind in PROGRAMS for block in blocks(page))}


RUN = sorted(with_programs() - ELSEWHERE.keys() - CHECKED)


def test_every_page_that_is_not_run_here_is_there_and_has_its_test() -> None:
    assert (ELSEWHERE.keys() | CHECKED) - with_programs() == set()
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []
    assert [test for name, test in ELSEWHERE.items() if Path(name).stem not in (ROOT / test).read_text()] == []
    assert len(RUN) >= 15


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
    found = blocks(NAMES[name])
    modules = None
    if any(block.kind == "js" for block in found):
        assert pytestconfig.cache is not None
        modules = node_modules(pytestconfig.cache.mkdir("node"))
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(BEFORE.get(name, "select 1"))
    run = Run(db, tmp_path, modules)
    try:
        for block in found:
            run.block(block)
    finally:
        with psycopg.connect(db, autocommit=True) as conn:
            # Roles that the page made may own rights in this database.
            made = conn.execute("select rolname from pg_roles where rolname like 'shop%'").fetchall()
            for (role,) in made:
                conn.execute(f'drop owned by "{role}"')
