"""Plants canaries wherever an operator or a stranger can put a text into the queue."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import psycopg

import menzil
from tests.canary.canaries import Canaries, Kind

#: The setting `redact` while canaries are planted.
REDACT = "password, *token*, *secret*, authorization, cookie, api_key, $.card.*"
CHANNEL, KEYED, BYTES = "canary-handler", "canary-keyed", "canary-bytes"
EVENT = "canary.paid"


def plant(canaries: Canaries, dsn: str, base: str) -> None:
    """Fill a database: endpoints at `base`, messages, events, schedules, settings, errors that programs wrote."""
    with menzil.Menzil(dsn, tracing=False) as mq, psycopg.connect(dsn, autocommit=True) as conn:
        for name, value in {"redact": REDACT, "http_allow_http": "true", "http_allow_internal_urls": "true"}.items():
            conn.execute("select menzil.set_setting(%s, %s)", (name, value))
        conn.execute("select menzil.set_setting('capture_response', 'true')")
        for name, config in endpoints(canaries, base).items():
            mq.create_endpoint(name, "http", config)
            mq.set_retry_policy(name, {"max_retries": 0})
            mq.send(name, payload(canaries, name), headers=headers(canaries, name), metadata=metadata(canaries, name))
        for channel in (CHANNEL, KEYED, BYTES):
            mq.channel_set(channel)
        _messages(canaries, mq)
        _events(canaries, mq)
        _schedules(canaries, mq)
        _written_by_hand(canaries, mq)


def endpoints(canaries: Canaries, base: str) -> dict[str, dict[str, Any]]:
    """Endpoints with every kind of credential that a config may hold."""

    def secret(where: str) -> str:
        return canaries.of(Kind.SECRET, where)

    signing = base64.b64encode(secrets.token_bytes(32)).decode()
    canaries.of(Kind.SECRET, "signing secret", signing)
    return {
        "canary-query": {"url": f"{base}/hook?api_key={secret('query of the url')}&plain=1"},
        "canary-basic": {
            "url": f"{base}/hook",
            "auth": {"type": "basic", "username": "ada", "password": secret("basic password")},
        },
        "canary-bearer": {"url": f"{base}/hook", "auth": {"type": "bearer", "token": secret("bearer token")}},
        "canary-headers": {
            "url": f"{base}/hook",
            "headers": {"X-Api-Key": secret("header X-Api-Key"), "Cookie": f"session={secret('cookie')}"},
        },
        "canary-signed": {"url": f"{base}/hook", "signing": {"secret": f"whsec_{signing}"}},
        "canary-oauth": {
            "url": f"{base}/hook",
            "auth": {
                "type": "oauth2",
                "token_url": f"{base}/token",
                "client_id": "ada",
                "client_secret": secret("client secret"),
            },
        },
        "canary-sigv4": {
            "url": f"{base}/hook",
            "auth": {
                "type": "sigv4",
                "access_key_id": "AKIDEXAMPLE",
                "secret_access_key": secret("secret access key"),
                "region": "eu-central-1",
                "service": "execute-api",
            },
        },
        "canary-proxy": {
            "url": f"{base}/hook",
            "proxy": {"url": base, "username": "ada", "password": secret("proxy password")},
        },
    }


def payload(canaries: Canaries, where: str) -> dict[str, Any]:
    """A payload with keys that are redacted at every depth, and ordinary ones."""
    return {
        "password": canaries.of(Kind.REDACTED, f"password in the payload of {where}"),
        "card": {"number": canaries.of(Kind.REDACTED, f"card in the payload of {where}")},
        "deep": [{"api_token": canaries.of(Kind.REDACTED, f"list in the payload of {where}")}],
        "note": canaries.of(Kind.PAYLOAD, f"note in the payload of {where}"),
    }


def headers(canaries: Canaries, where: str) -> dict[str, str]:
    """Headers of a message, one of them a credential."""
    return {"authorization": f"Bearer {canaries.of(Kind.REDACTED, f'authorization header of {where}')}"}


def metadata(canaries: Canaries, where: str) -> dict[str, Any]:
    """Metadata of a message, one key of it redacted."""
    return {"session_token": canaries.of(Kind.REDACTED, f"metadata of {where}"), "tenant": "a"}


def _messages(canaries: Canaries, mq: menzil.Menzil) -> None:
    mq.send(CHANNEL, payload(canaries, CHANNEL), metadata=metadata(canaries, CHANNEL))
    key = canaries.of(Kind.KEY, "ordering key")
    for _ in range(2):
        mq.send(
            KEYED,
            payload(canaries, KEYED),
            ordering_key=key,
            idempotency_key=canaries.of(Kind.KEY, "idempotency key"),
        )
    inside = f'{{"password": "{canaries.of(Kind.REDACTED, "JSON in bytes")}"}}'
    mq.send(BYTES, inside.encode())
    mq.send(CHANNEL, payload(canaries, "a scheduled message"), delay=3600)


def _events(canaries: Canaries, mq: menzil.Menzil) -> None:
    mq.create_event_type(EVENT, "an event")
    mq.subscribe(EVENT, CHANNEL)
    mq.publish(EVENT, payload(canaries, EVENT))


def _schedules(canaries: Canaries, mq: menzil.Menzil) -> None:
    told: dict[str, Any] = {"headers": headers(canaries, "a schedule"), "metadata": metadata(canaries, "a schedule")}
    mq.schedule_create("canary-nightly", "0 3 * * *", CHANNEL, payload(canaries, "a schedule"), **told)


def _written_by_hand(canaries: Canaries, mq: menzil.Menzil) -> None:
    """An error and a state that a consumer of its own writes."""
    mq.channel_set("canary-sql")
    mq.send("canary-sql", payload(canaries, "canary-sql"))
    (message,) = mq.dequeue(channels="canary-sql")
    mq.fail(message, f"login failed: password={canaries.of(Kind.WRITTEN, 'error by SQL')} was wrong", permanent=True)
    mq.send("canary-sql", payload(canaries, "canary-sql"))
    (message,) = mq.dequeue(channels="canary-sql")
    mq.defer(message, delay=3600, state=canaries.of(Kind.PAYLOAD, "saved state").encode())


def handlers(canaries: Canaries, app: menzil.Worker, dsn_password: str) -> None:
    """Handlers that say too much when they fail."""
    said: dict[int, int] = {}

    @app.handler(CHANNEL)
    async def talkative(message: menzil.Message) -> menzil.Outcome | None:
        said[0] = said.get(0, 0) + 1
        if said[0] == 1:
            raise ValueError(f"cannot use {message.payload!r} of {message.metadata!r} with {dsn_password}")
        return menzil.Fail(f"no: {message.payload!r}, token={message.payload['password']}", retry=False)

    @app.handler(KEYED)
    def in_thread(message: menzil.Message) -> menzil.Outcome | None:
        try:
            raise KeyError(str({"api_key": message.payload["password"]}))
        except KeyError as error:
            raise RuntimeError(f"password: {message.payload['password']}") from error

    @app.handler(BYTES)
    async def answering(message: menzil.Message) -> menzil.Outcome | None:
        return menzil.Complete(response={"status": 200, "body": message.content.decode() if message.content else ""})
