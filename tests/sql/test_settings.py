"""Settings: what they accept, what they refuse, and that every change leaves a line in the event log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        yield connection


def value(conn: psycopg.Connection, name: str) -> str:
    (found,) = conn.execute("select menzil.setting(%s)", [name]).fetchone()
    return found


def change(conn: psycopg.Connection, name: str, to: str | None) -> None:
    conn.execute("select menzil.set_setting(%s, %s)", [name, to])


def test_every_setting_starts_with_its_default(conn: psycopg.Connection) -> None:
    rows = conn.execute("select name, value, default_value, unit, description from menzil.settings").fetchall()
    assert len(rows) >= 18
    for name, now, default, unit, description in rows:
        assert now == default, name
        assert unit, name
        assert description.endswith("."), name


def test_every_column_behind_the_settings_is_in_the_view(conn: psycopg.Connection) -> None:
    columns = conn.execute(
        """select attname::text from pg_attribute
            where attrelid = 'menzil.setting_value'::regclass and attnum > 0 and not attisdropped
              -- No settings: the only row, and since when completed messages do not stay in the archive.
              and attname not in ('only_row', 'archive_off_at', 'archive_off_xid')"""
    ).fetchall()
    # A newer setting is a row of setting_word, which no sender reads.
    newer = "unit in ('patterns', 'words') or name = 'broker_allowed_networks'"
    settings = conn.execute(f"select name from menzil.settings where not ({newer})").fetchall()
    assert sorted(columns) == sorted(settings)


def test_numbers_are_accepted_to_both_ends_of_their_range_and_not_beyond(conn: psycopg.Connection) -> None:
    rows = conn.execute("select name, minimum, maximum from menzil.settings where minimum is not null").fetchall()
    assert len(rows) == 14
    for name, minimum, maximum in rows:
        for number in (minimum, maximum):
            change(conn, name, str(number))
            assert value(conn, name) == str(number)
        for number in (minimum - 1, maximum + 1, 10**30):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=name):
                change(conn, name, str(number))
        assert value(conn, name) == str(maximum)


def test_values_may_carry_units(conn: psycopg.Connection) -> None:
    for name, given, kept in [
        ("retry_base_delay", "30s", "30"),
        ("retry_base_delay", "5 min", "300"),
        ("retry_base_delay", " 42 ", "42"),
        ("idempotency_retention", "2 days", "172800"),
        ("circuit_breaker_cooldown", "1.5 min", "90"),
        ("max_payload_size", "64kB", "65536"),
        ("max_payload_size", "2 MB", "2097152"),
        ("notify", "off", "false"),
        ("notify", "YES", "true"),
        ("http_allowed_networks", "10.0.0.0/8,fd00::/8  192.168.1.1", "10.0.0.0/8, fd00::/8, 192.168.1.1/32"),
        ("http_allowed_networks", "", ""),
        ("broker_allowed_networks", "10.0.0.0/8 127.0.0.1", "10.0.0.0/8, 127.0.0.1/32"),
    ]:
        change(conn, name, given)
        assert value(conn, name) == kept, given


def test_nonsense_is_refused_with_a_hint(conn: psycopg.Connection) -> None:
    for name, given in [
        ("retry_base_delay", "soon"),
        ("retry_base_delay", "500 ms"),
        ("retry_base_delay", "2h"),
        ("retry_base_delay", "infinity"),
        ("retry_base_delay", ""),
        ("retry_base_delay", "1e2"),
        ("default_max_retries", "5 min"),
        ("default_max_retries", "2.5"),
        ("max_payload_size", "1 XB"),
        ("max_payload_size", "1 TB"),
        ("notify", "maybe"),
        ("notify", "2"),
        ("http_allowed_networks", "intranet"),
        ("broker_allowed_networks", "10.1.2.3/8"),
        ("http_allowed_networks", "10.1.2.3/8"),
        ("http_allowed_networks", "10.0.0.0/8; drop table"),
    ]:
        before = value(conn, name)
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            change(conn, name, given)
        assert refusal.value.diag.message_hint, given
        assert value(conn, name) == before


def test_a_setting_of_ulak_that_is_none_here_says_where_it_is(conn: psycopg.Connection) -> None:
    for name, hint in [
        ("ulak.http_timeout", "It is timeout_seconds in the config of an endpoint."),
        ("workers", "It is the option --processes of menzil worker."),
        ("ulak.retry_base_delay", "Did you mean retry_base_delay?"),
        ("menzil.max_queue_size", "Did you mean max_queue_size?"),
    ]:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            conn.execute("select menzil.set_setting(%s, '1')", [name])
        assert (refusal.value.diag.message_hint or "").startswith(hint)


def test_a_mistyped_name_is_refused_with_the_nearest_one(conn: psycopg.Connection) -> None:
    for query in ["select menzil.set_setting('max_queu_size', '1')", "select menzil.setting('max_queue')"]:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            conn.execute(query)
        assert "Did you mean max_queue_size?" in refusal.value.diag.message_hint
    for name in ["xyz", "only_row", "name; drop table", ""]:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="no setting named"):
            change(conn, name, "1")


def test_null_is_refused(conn: psycopg.Connection) -> None:
    for query in [
        "select menzil.set_setting(null, '1')",
        "select menzil.set_setting('notify', null)",
        "select menzil.setting(null)",
    ]:
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            conn.execute(query)


def test_default_sets_a_setting_back(conn: psycopg.Connection) -> None:
    change(conn, "retry_max_delay", "600")
    change(conn, "retry_max_delay", "default")
    assert value(conn, "retry_max_delay") == "300"


def test_only_a_change_is_an_event(conn: psycopg.Connection) -> None:
    change(conn, "retry_max_delay", "10 min")
    change(conn, "retry_max_delay", "600")
    change(conn, "notify", "off")
    events = conn.execute(
        "select entity_id, old_value, new_value from menzil.event_log where event_type = 'setting.changed' order by id"
    ).fetchall()
    assert events == [("retry_max_delay", "300", "600"), ("notify", "true", "false")]


def test_a_rolled_back_change_is_no_change(conn: psycopg.Connection) -> None:
    with conn.transaction(force_rollback=True):
        change(conn, "notify", "off")
    assert value(conn, "notify") == "true"
    changed = "select count(*) from menzil.event_log where event_type = 'setting.changed'"
    assert conn.execute(changed).fetchone() == (0,)


def test_the_reference_lists_every_setting_with_its_default_and_range(conn: psycopg.Connection) -> None:
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\| ([\d–]*) ?\| (\w+) \|", page.replace("\\*", "*"), re.MULTILINE)
    actual = conn.execute(
        "select name, default_value, coalesce(minimum || '–' || maximum, ''), unit from menzil.settings"
    ).fetchall()
    assert listed == actual


def test_the_reference_says_of_each_setting_what_the_database_says_and_perhaps_more(conn: psycopg.Connection) -> None:
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8").replace("`", "").replace("\\*", "*")
    rows = (line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| "))
    says = {row[0].strip(): row[-1].strip() for row in rows if len(row) >= 3}
    for name, description in conn.execute("select name, description from menzil.settings"):
        told = description[0].lower() + description[1:].rstrip(".")
        assert says[name].startswith(told), name
