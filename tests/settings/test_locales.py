"""A database whose locale has other small letters than English: in Turkish the small letter of I is not i."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.install import migrate
from tests.integration.install.system_postgres import missing, system_postgres
from tests.settings.day import prepare, work

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

HOOK = """select menzil.create_endpoint(%s, 'http', jsonb_build_object('url', 'HTTPS://shop.example/') || %s::jsonb)"""


@pytest.fixture(scope="module")
def turkish() -> Iterator[str]:
    """The DSN of a database with menzil; the embedded PostgreSQL has no ICU, that of a system usually has."""
    with system_postgres() as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            locale = "locale_provider icu icu_locale 'tr-TR' lc_collate 'C' lc_ctype 'C'"
            try:
                conn.execute(f"create database turkish template template0 encoding 'UTF8' {locale}")
            except psycopg.errors.FeatureNotSupported as error:
                pytest.skip(str(error))
        dsn = make_conninfo(dsn, dbname="turkish")
        migrate(dsn)
        yield dsn


@pytest.fixture
def conn(turkish: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(turkish, autocommit=True) as conn:
        assert conn.execute("select lower('I') = 'i'").fetchone() == (False,)
        yield conn


def test_a_day_at_the_shop_goes_well(turkish: str) -> None:
    prepare(turkish)
    work(turkish, "turkish")


def test_header_names_are_compared_as_http_compares_them(conn: psycopg.Connection) -> None:
    conn.execute(HOOK, ["hook", "{}"])
    for headers, refusal in (
        ('{"TRANSFER-ENCODING": "chunked"}', "may not set the header 'TRANSFER-ENCODING'"),
        ('{"X-ID": "a", "x-id": "b"}', "is given twice"),
        (f'{{"X-ID": "a", "x-id": "b", "x-{"y" * 250}": "1", {names(40)}}}', "is given twice"),
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=refusal):
            conn.execute("select menzil.send_with_options('hook', '1', p_headers => %s::jsonb)", [headers])


def names(count: int) -> str:
    """So many headers that their names are compared all at once."""
    return ", ".join(f'"{"n" * 100}-{number}": ""' for number in range(count))


def test_headers_of_an_endpoint_are_compared_as_http_compares_them(conn: psycopg.Connection) -> None:
    bearer = '"auth": {"type": "bearer", "token": "t"}'
    for config, refusal in (
        ('{"headers": {"CONNECTION": "close"}}', "headers.CONNECTION may not be set"),
        ('{"headers": {"X-ID": "a", "x-id": "b"}}', "is given twice"),
        (f'{{"headers": {{"AUTHORIZATION": "Basic x"}}, {bearer}}}', "may not be set next to auth"),
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=refusal):
            conn.execute(HOOK, ["other", config])
    conn.execute(HOOK, ["secret", '{"headers": {"X-SIGNATURE": "s3cret"}}'])
    stored = conn.execute(
        "select config #> '{headers,X-SIGNATURE}' from menzil.endpoints where name = 'secret'"
    ).fetchone()
    assert stored == ({"$secret": True},)
    conn.execute(HOOK, ["overriding", '{"headers": {"X-ID": "a"}, "overridable_headers": ["x-id"]}'])
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="may not be set"):
        conn.execute("""select menzil.create_endpoint('nats', 'nats', '{"servers": ["nats.example"], "subject": "a",
                        "headers": {"MENZIL-ID": "a"}}')""")


def test_words_of_schedules_and_settings_are_english(conn: psycopg.Connection) -> None:
    monday = "2026-11-16 00:00:00+00"
    for cron in ("0 3 * * FRI", "0 3 * * fri"):
        fires = conn.execute("select menzil.cron_next(%s, 'europe/istanbul', %s)::text", [cron, monday]).fetchone()
        assert fires == ("2026-11-20 00:00:00+00",)
    conn.execute("select menzil.cron_parse('@DAILY')")
    conn.execute("select menzil.set_setting('console_payloads', 'HIDE')")
    conn.execute("select menzil.set_setting('console_payloads', 'DEFAULT')")
