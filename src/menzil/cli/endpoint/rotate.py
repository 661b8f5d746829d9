"""A new signing secret without a moment in which receivers cannot verify: two live secrets, two signatures."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import click

from menzil.cli.database import Database, on_database
from menzil.cli.show import say
from menzil.model.errors import UsageError
from menzil.model.secrets import encrypt_config, secret_keys
from menzil.ops import endpoints
from menzil.watch.endpoints import described

#: Random bytes of a secret.
LENGTH = 32

#: Secrets that an endpoint may sign with at once.
MOST = 5


@click.command()
@click.argument("name")
@click.option("--finish", is_flag=True, help="Drop the old secrets: receivers know the new one by now.")
@on_database
def rotate(db: Database, name: str, finish: bool) -> None:
    """Sign with a new secret and print it, this once.

    Signatures of the old one go on beside it until --finish.
    """
    new = "whsec_" + base64.b64encode(secrets.token_bytes(LENGTH)).decode()
    db.change(lambda: _sign(db, name, None if finish else new))
    if finish:
        say(f"Endpoint {name} signs with its new secret alone.")
        return
    click.echo(new)
    say(f"Give it to the receiver of {name}, then run `menzil endpoint rotate {name} --finish`.")


def _sign(db: Database, name: str, new: str | None) -> None:
    config = described(db.run, name)["config"]
    kept = _secrets(config)
    if new is None:
        if len(kept) < 2:
            raise UsageError(
                f"No rotation of endpoint {name} is under way.", hint=f"begin with `menzil endpoint rotate {name}`"
            )
        kept = kept[:1]
    elif len(kept) >= MOST:
        hint = f"run `menzil endpoint rotate {name} --finish` first; it keeps the newest"
        raise UsageError(f"Endpoint {name} signs with {len(kept)} secrets already.", hint=hint)
    else:
        # All older ones stay: if the last new one was lost before the receiver got it, this is the way out.
        kept = [new, *kept]
    changed = encrypt_config({**config, "signing": {"secrets": kept}}, name, secret_keys(None))
    db.run(endpoints.alter_endpoint(name, changed))


def _secrets(config: dict[str, Any]) -> list[Any]:
    """The marks of the stored secrets, newest first."""
    signing = config.get("signing") or {}
    single = signing.get("secret")
    return [single] if single is not None else list(signing.get("secrets") or [])
