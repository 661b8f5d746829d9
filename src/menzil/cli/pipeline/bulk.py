"""What `menzil pipeline send` and `fanout` do alike: tell the plan, send with --yes, exit with 1 over bad rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.pipeline import tell
from menzil.cli.pipeline.options import Workshop

if TYPE_CHECKING:
    from menzil.spark.jobs.bulk import BulkPlan, SendReport


def conclude(
    shop: Workshop,
    kind: str,
    opening: list[str],
    plan: BulkPlan,
    act: Callable[[], SendReport],
    *,
    rejects: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Tell a plan, which begins with these sentences, and do it unless refused rows forbid it."""
    sentences = [
        *opening,
        *tell.shares(plan.endpoints),
        *tell.sample(plan.sample),
        *tell.refused(plan.reasons, plan.refused_rows, rejects),
        *tell.said_before(plan.already_sent, "send id"),
    ]
    bad = plan.refused > 0 and plan.already_sent is None
    tell.conclude(
        sentences,
        asdict(plan),
        lambda: tell.finished(shop, kind, None, act, as_json),
        yes=yes,
        stopped=bad and rejects is None,
        as_json=as_json,
    )
    if bad:
        raise SystemExit(SOMETHING_TO_FIX)
