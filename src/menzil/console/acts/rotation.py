"""The signing secret of an endpoint: begin with a new one, shown once; finish, so that the old ones sign no more."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from typing import Any

from menzil.console.act import Done, Given, Plan, Undo
from menzil.console.acts.endpoints import OnEndpoint
from menzil.console.configs import HIDDEN
from menzil.console.words import many
from menzil.model.errors import UsageError
from menzil.model.secrets import encrypt_config, secret_keys
from menzil.ops import endpoints
from menzil.ops.op import Op
from menzil.watch.finding import Run

#: Bytes of a new secret, and secrets that an endpoint may sign with at once.
LENGTH, MOST = 32, 5


class Rotate(OnEndpoint):
    """Sign with a new secret beside the old ones."""

    name, title, verb, role = "endpoint-rotate", "Rotate a signing secret", "Make a new secret", "admin"

    def config(self, run: Run, given: Given, new: str) -> dict[str, Any]:
        """The config with the new secret in front."""
        config, kept = _kept(self.found(run, given)["config"])
        if len(kept) >= MOST:
            raise UsageError(f"{given['endpoint']} signs with {len(kept)} secrets already.", hint="finish the rotation")
        return {**config, "signing": {**_other(config), "secrets": [new, *kept]}}

    def plan(self, run: Run, given: Given) -> Plan:
        _, kept = _kept(self.found(run, given)["config"])
        self.config(run, given, HIDDEN)
        return Plan(
            f"Requests to {given['endpoint']} are signed with a new secret.",
            self.command("rotate", given),
            more=["The new secret is shown once, on the next page. Give it to the receiver, then finish the rotation."],
            leaves=[f"The {many(len(kept), 'old secret')} signs beside it until then."] if kept else [],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        return [endpoints.alter_endpoint(given["endpoint"], self.config(run, given, HIDDEN))]

    def execute(self, run: Run, given: Given) -> Done:
        name = given["endpoint"]
        new = "whsec_" + base64.b64encode(secrets.token_bytes(LENGTH)).decode()
        run(endpoints.alter_endpoint(name, encrypt_config(self.config(run, given, new), name, secret_keys(None))))
        # No undo: marks stand for stored secrets by their order, so the old config would keep the new secret.
        after = Undo("endpoint-rotate-finish", given, "Finish the rotation")
        return Done(f"{name} signs with a new secret, beside the old ones.", next=after, once={"The new secret": new})


class Finish(OnEndpoint):
    """Keep the newest secret alone."""

    name, title, verb = "endpoint-rotate-finish", "Finish a rotation", "Drop the old secrets"
    role, danger = "admin", True

    def config(self, run: Run, given: Given) -> dict[str, Any]:
        """The config with the newest secret alone."""
        config, kept = _kept(self.found(run, given)["config"])
        if len(kept) < 2:
            raise UsageError(f"No rotation of endpoint {given['endpoint']} is under way.", hint="begin one first")
        return {**config, "signing": {**_other(config), "secrets": kept[:1]}}

    def plan(self, run: Run, given: Given) -> Plan:
        _, kept = _kept(self.found(run, given)["config"])
        self.config(run, given)
        return Plan(
            f"Requests to {given['endpoint']} are signed with its newest secret alone.",
            self.command("rotate", given, " --finish"),
            more=[f"{many(len(kept) - 1, 'old secret')} dropped."],
            warnings=["A receiver that does not know the new one refuses from now on. There is no undo."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        return [endpoints.alter_endpoint(given["endpoint"], self.config(run, given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"{given['endpoint']} signs with its newest secret alone.")


def _kept(config: dict[str, Any] | None) -> tuple[dict[str, Any], list[Any]]:
    """The config, and the marks of the stored secrets, newest first."""
    signing = (config or {}).get("signing") or {}
    single = signing.get("secret")
    return dict(config or {}), [single] if single is not None else list(signing.get("secrets") or [])


def _other(config: dict[str, Any]) -> dict[str, Any]:
    signing = config.get("signing") or {}
    return {name: value for name, value in signing.items() if name not in ("secret", "secrets")}


ACTS = (Rotate(), Finish())
