"""Counts of channels beside more sends than a look reads: lower bounds, and called so until all are folded."""

from __future__ import annotations

import psycopg

from menzil.console.words import capped
from menzil.watch.channels import channels, turns
from menzil.watch.overview import overview
from menzil.watch.states import number
from tests.integration.watch.conftest import Seat
from tests.telemetry.scraped import scrape, value


def test_counts_are_called_lower_bounds_while_more_is_there_than_is_read(seat: Seat, watched_db: str) -> None:
    with psycopg.connect(watched_db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('other')")
        conn.execute("select count(menzil.send('work', '{}')) from generate_series(1, 20000)")
        conn.execute("select menzil.send('other', '{}')")
        conn.execute("select menzil.channel_pause('other')")
        assert [row["at_least"] for row in channels(seat)["channels"]] == [True, True]
        worst = {row["channel"]: row for row in overview(seat)["worst_channels"]}
        assert worst["work"]["waiting"] <= 20_000
        assert all(row["at_least"] for row in worst.values())
        found = scrape(watched_db)
        for channel in ("work", "other"):
            assert value(found, "menzil_messages_waiting_is_lower_bound", channel=channel) == 1
        assert value(found, "menzil_queue_depth") == 20_001, "from registers"
        while conn.execute("select exists (select from menzil.line)").fetchone() == (True,):
            conn.execute("select menzil.maintain()")
    found = scrape(watched_db)
    assert value(found, "menzil_messages_waiting_is_lower_bound", channel="work") == 0
    assert value(found, "menzil_messages_waiting", channel="work") == 20_000
    rows = {row["channel"]: row for row in channels(seat)["channels"]}
    assert (rows["other"]["waiting"], rows["other"]["at_least"]) == (1, False)
    assert [(one["channel"], one["at_least"]) for one in turns(seat)["skipped"]] == [("other", False)]
    assert not any(row["at_least"] for row in overview(seat)["worst_channels"])


def test_lower_bound_is_written_as_one() -> None:
    assert (capped(7, True), capped(7), capped(20_000, True)) == ("≥ 7", "7", "10,000+")
    assert (number(7, True), number(7), number(20_000)) == ("7+", "7", "10,000+")
