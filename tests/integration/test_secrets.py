"""Secrets that a client encrypted: the database holds what nobody can read, and the worker reads it."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from menzil import AsyncMenzil, InvalidValueError, Menzil, SecretError
from menzil.embedded import Embedded
from menzil.model.secret_paths import _HEADER, RULES, is_secret_header
from menzil.model.secrets import SecretKeys, decrypt_config
from tests.integration.cli.user import User

KEY, OTHER = (base64.b64encode(bytes([n]) * 32).decode() for n in (3, 4))
SIGNING = "whsec_" + base64.b64encode(b"canary-" * 5).decode()
SECRETS = {
    "password": "canary-password",
    "header": "canary-header",
    "key": "-----BEGIN PRIVATE KEY-----\ncanarykey\n-----END PRIVATE KEY-----\n",
    "proxy": "canary-proxy",
    "signing": SIGNING,
}
CONFIG: dict[str, Any] = {
    "url": "https://example.com/hook",
    "headers": {"X-Api-Key": SECRETS["header"], "X-Tenant": "a"},
    "auth": {"type": "basic", "username": "ann", "password": SECRETS["password"]},
    "signing": {"secret": SIGNING},
    "tls": {"cert": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", "key": SECRETS["key"]},
    "proxy": {"url": "http://proxy:3128", "username": "u", "password": SECRETS["proxy"]},
}
MARK = {"$secret": True}


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        yield connection


@pytest.fixture
def client(db: str) -> Iterator[Menzil]:
    with Menzil(db, secret_key=KEY) as menzil:
        yield menzil


def stored(conn: psycopg.Connection, name: str) -> Any:
    """The config as a worker gets it."""
    [[config]] = conn.execute("select config from menzil.delivery_configs(array[%s])", [name]).fetchall()
    return config


def opened(conn: psycopg.Connection, name: str, keys: str = KEY) -> Any:
    """The same, as the worker reads it with these keys."""
    return decrypt_config(stored(conn, name), name, SecretKeys(keys))


def everything(conn: psycopg.Connection) -> str:
    """All that is in the database, table by table and view by view."""
    found = conn.execute(
        "select relname from pg_class where relnamespace = 'menzil'::regnamespace and relkind in ('r', 'p', 'v', 'm')"
    ).fetchall()
    return "\n".join(
        str(conn.execute(sql.SQL("select t::text from menzil.{} t").format(sql.Identifier(name))).fetchall())
        for (name,) in found
    )


def test_rules_of_python_and_sql_are_the_same(conn: psycopg.Connection) -> None:
    for (protocol,) in conn.execute("select unnest(menzil.known_protocols())").fetchall():
        rows = conn.execute(
            "select path, kind, minimum, maximum from menzil._config_rules(%s)"
            " where kind ~ 'secret|private|credentials'",
            [protocol],
        ).fetchall()
        ours = {(".".join(rule.path), *rule[1:]) for rule in RULES[protocol]}
        assert {(path, kind, _whole(low), _whole(high)) for path, kind, low, high in rows} == ours
        plain = conn.execute(
            "select path from menzil._config_rules(%s) where kind !~ 'secret|private|credentials'", [protocol]
        ).fetchall()
        secret = {".".join(rule.path) for rules in RULES.values() for rule in rules}
        assert not secret & {path for (path,) in plain}, "a path is a secret in one protocol and none in another"


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


def test_headers_are_secret_to_python_and_sql_alike(conn: psycopg.Connection) -> None:
    names = [
        *(
            "Authorization",
            "X-Auth",
            "x-auth-token",
            "Cookie",
            "SET-COOKIE",
            "X-Api-Key",
            "apikey",
            "X-Signature",
            "Key",
        ),
        *(
            "X-Tenant",
            "Content-Type",
            "Author",
            "auth",
            "X-Password",
            "X-Credentials",
            "Accept",
            "X-Tok",
            "Monkey",
            "K",
        ),
    ]
    judged = conn.execute("select n, menzil._is_secret_header(n) from unnest(%s::text[]) n", [names]).fetchall()
    assert {name: is_secret_header(name) for name in names} == dict(judged)
    assert {True, False} == set(dict(judged).values())
    [[body]] = conn.execute("select pg_get_functiondef('menzil._is_secret_header'::regproc)").fetchall()
    assert f"({_HEADER.pattern})" in body


def test_the_database_holds_no_secret_in_plain(client: Menzil, conn: psycopg.Connection) -> None:
    client.create_endpoint("billing", "http", CONFIG)
    client.alter_endpoint(
        "billing", {**CONFIG, "url": "https://example.com/v2", "headers": {"Cookie": "canary-cookie"}}
    )
    client.send("billing", {"a": 1})
    client.disable_endpoint("billing")
    held = everything(conn)
    assert "$encrypted" in held
    assert "https://example.com/v2" in held
    assert "canary" not in held
    assert SIGNING not in held
    assert base64.b64encode(b"canary")[:-2].decode() not in held
    [[config]] = conn.execute("select config from menzil.endpoints where name = 'billing'").fetchall()
    assert config["auth"]["password"] == MARK
    assert config["headers"] == {"Cookie": MARK}


def test_no_plain_secret_reaches_the_server_or_its_log(db: str, server: Embedded, conn: psycopg.Connection) -> None:
    before = server._running().log.stat().st_size  # other tests have a canary of their own
    [[name]] = conn.execute("select current_database()").fetchall()
    conn.execute(sql.SQL("alter database {} set log_min_duration_statement = 0").format(sql.Identifier(name)))
    with Menzil(db, secret_key=KEY) as client:
        client.validate_endpoint_config("http", CONFIG)
        client.create_endpoint("billing", "http", CONFIG)
        with pytest.raises(InvalidValueError):
            client.alter_endpoint("billing", {**CONFIG, "timeout_seconds": -1})
    log = server._running().log.read_bytes()[before:].decode(errors="replace")
    assert "menzil.create_endpoint" in log, "the log shows what was sent"
    assert "$encrypted" in log
    assert not re.search("canary", log)


def test_the_worker_gets_the_secrets_back(client: Menzil, conn: psycopg.Connection) -> None:
    client.create_endpoint("billing", "http", CONFIG)
    assert opened(conn, "billing") == CONFIG
    assert opened(conn, "billing", f"{OTHER},{KEY}") == CONFIG
    for key in ("", OTHER):
        with pytest.raises(SecretError, match="of endpoint 'billing' is encrypted with key"):
            opened(conn, "billing", key)


def test_a_mark_keeps_the_encrypted_secret(client: Menzil, conn: psycopg.Connection) -> None:
    client.create_endpoint("billing", "http", CONFIG)
    before = stored(conn, "billing")
    marked = {
        **CONFIG,
        "headers": {"X-Api-Key": MARK},
        "auth": {**CONFIG["auth"], "password": MARK},
        "signing": {"secret": MARK},
        "tls": {**CONFIG["tls"], "key": MARK},
        "proxy": {**CONFIG["proxy"], "password": "canary-new"},
    }
    client.alter_endpoint("billing", marked)
    after = stored(conn, "billing")
    assert after["auth"] == before["auth"]
    assert after["tls"] == before["tls"]
    read = opened(conn, "billing")
    assert read["proxy"]["password"] == "canary-new"
    assert read["headers"] == {"X-Api-Key": SECRETS["header"]}


def test_a_signing_secret_is_rotated_without_knowing_the_old_one(client: Menzil, conn: psycopg.Connection) -> None:
    new = "whsec_" + base64.b64encode(b"another" * 5).decode()
    client.create_endpoint("billing", "http", CONFIG)
    client.alter_endpoint("billing", {"url": CONFIG["url"], "signing": {"secrets": [new, MARK]}})
    assert opened(conn, "billing")["signing"]["secrets"] == [new, SIGNING]
    client.alter_endpoint("billing", {"url": CONFIG["url"], "signing": {"secrets": [MARK]}})
    assert opened(conn, "billing")["signing"]["secrets"] == [new]


def test_plain_and_encrypted_endpoints_live_side_by_side(db: str, client: Menzil, conn: psycopg.Connection) -> None:
    with Menzil(db, secret_key="") as plain:
        plain.create_endpoint("old", "http", CONFIG)
    client.create_endpoint("new", "http", CONFIG)
    for name in ("old", "new"):
        assert opened(conn, name) == CONFIG
    client.alter_endpoint("old", CONFIG)
    assert "canary" not in str(stored(conn, "old"))


def test_a_secret_of_another_endpoint_cannot_be_borrowed(client: Menzil, conn: psycopg.Connection) -> None:
    client.create_endpoint("billing", "http", CONFIG)
    [[secrets]] = conn.execute("select secrets from menzil.endpoint_secret").fetchall()
    stolen = {"url": "https://evil.example", "auth": {**CONFIG["auth"], "password": secrets["{auth,password}"]}}
    conn.execute("select menzil.create_endpoint('evil', 'http', %s)", [Jsonb(stolen)])
    with pytest.raises(SecretError, match="belongs to another place"):
        opened(conn, "evil")


@pytest.mark.parametrize(
    "value",
    [
        {"$encrypted": "v1:0123abcd:short"},
        {"$encrypted": "v2:0123abcd:" + "A" * 60},
        {"$encrypted": "v1:0123ABCD:" + "A" * 60},
        {"$encrypted": "v1:0123abcd:" + "A" * 60 + "\n"},
        {"$encrypted": "v1:0123abcd:" + "A" * 60, "more": 1},
        {"$encrypted": 5},
        {"$encrypted": None},
        {},
    ],
)
def test_what_only_looks_encrypted_is_refused(client: Menzil, value: Any) -> None:
    for keys in [
        {"auth": {**CONFIG["auth"], "password": value}},
        {"signing": {"secrets": [value]}},
        {"headers": {"Cookie": value}},
    ]:
        with pytest.raises(InvalidValueError):
            client.validate_endpoint_config("http", {"url": CONFIG["url"], **keys})


def test_only_a_secret_may_be_encrypted(client: Menzil, conn: psycopg.Connection) -> None:
    good = {"$encrypted": "v1:0123abcd:" + "A" * 60}
    for keys in [
        {"url": good},
        {"url": CONFIG["url"], "headers": {"X-Tenant": good}},
        {"url": CONFIG["url"], "auth": {**CONFIG["auth"], "username": good}},
    ]:
        with pytest.raises(InvalidValueError):
            client.create_endpoint("e", "http", keys)
    client.create_endpoint("e", "http", CONFIG)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="may not be stored in the config itself"):
        conn.execute(
            "update menzil.channel set config = jsonb_set(config, '{auth,password}', %s) where name = 'e'",
            [Jsonb(good)],
        )


def test_the_async_client_encrypts_too(db: str, conn: psycopg.Connection) -> None:
    async def work() -> None:
        async with AsyncMenzil(db, secret_key=KEY) as client:
            await client.validate_endpoint_config("http", CONFIG)
            await client.create_endpoint("billing", "http", CONFIG)
            await client.alter_endpoint("billing", CONFIG)

    asyncio.run(work())
    assert "canary" not in everything(conn)
    assert opened(conn, "billing") == CONFIG


def test_the_command_line_encrypts_with_the_key_of_the_environment(
    db: str, conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENZIL_SECRET_KEY", KEY)
    user = User(db)
    user.gets("endpoint", "create", "billing", "--url", CONFIG["url"], "--header", "X-Api-Key=canary")
    user.gets("endpoint", "alter", "billing", "--config", '{"auth": {"type": "bearer", "token": "canary"}}')
    new = user.gets("endpoint", "rotate", "billing")
    held = everything(conn)
    assert "canary" not in held
    assert new not in held
    read = opened(conn, "billing")
    assert (read["headers"], read["auth"]["token"]) == ({"X-Api-Key": "canary"}, "canary")
    assert read["signing"]["secrets"] == [new]
