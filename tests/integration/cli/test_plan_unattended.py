"""A plan that runs while no worker is alive: every place that says "running" says how to start one."""

from __future__ import annotations

import psycopg

from menzil import Menzil
from menzil.console import Access, Console
from tests.console.seat import served
from tests.integration.cli.test_history import kill
from tests.integration.cli.user import User

SENTENCE = "No worker is alive, and workers step plans: start one with `menzil worker`."


def test_plan_that_no_worker_steps_says_so_wherever_it_is_shown(user: User, mq: Menzil) -> None:
    kill(user, mq, "work", ["HTTP 404 Not Found"] * 2)
    plan = user.types("plan", "create", "redrive", "--channel", "work").stdout.strip()
    with served(Console(user.dsn, local=Access.admin("ada"))) as browser:
        assert SENTENCE in browser.get(f"/acts/plan-run?plan={plan}").words
        result = user.types("plan", "run", plan)
        assert result.exit_code == 0
        assert "is running" in result.stdout
        assert SENTENCE in result.stderr
        assert SENTENCE in user.types("plan", "show", plan).stderr
        assert user.reads("plan", "show", plan)["unattended"] == SENTENCE
        assert SENTENCE in browser.get(f"/plans/{plan}").words
        with psycopg.connect(user.dsn, autocommit=True) as conn:
            conn.execute("select menzil.worker_hello('web-1', 'host', 1, '0.2.0', null, 10)")
        assert user.reads("plan", "show", plan)["unattended"] is None
        assert SENTENCE not in user.types("plan", "show", plan).stderr


def test_plan_that_is_stepped_here_to_its_end_needs_no_worker(user: User, mq: Menzil) -> None:
    kill(user, mq, "work", ["HTTP 404 Not Found"])
    plan = user.types("plan", "create", "redrive", "--channel", "work").stdout.strip()
    result = user.types("plan", "run", plan, "--here")
    assert "is done" in result.stdout
    assert SENTENCE not in result.stderr
