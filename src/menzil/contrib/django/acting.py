"""Acts of the admin on selected rows: each alone, and a row that does not allow the act is skipped and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db import transaction

from menzil.contrib.django.queue import run_in
from menzil.model.errors import MenzilError
from menzil.ops import acting
from menzil.ops.op import Op

#: Names of rows in one sentence.
SHOWN = 10


def act(admin: Any, request: Any, queryset: Any, done: str, op: Callable[[Any], Op[Any]]) -> None:
    """Do it for each row, in a transaction each, as the user who is logged in."""
    alias, made, skipped = queryset.db, 0, []
    for row in queryset.order_by("pk"):
        try:
            with transaction.atomic(using=alias):
                run_in(alias, acting.act_as(request.user.get_username(), "console"))
                answer = run_in(alias, op(row))
        except MenzilError as error:
            skipped.append(f"{row.pk} ({error.message.rstrip('.')})")
            continue
        if answer is False:
            skipped.append(f"{row.pk} (its state does not allow it any more)")
        else:
            made += 1
    if made:
        admin.message_user(request, f"{done}: {made}.", messages.SUCCESS)
    if skipped:
        more = f" and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
        text = f"Skipped: {len(skipped)}. {', '.join(skipped[:SHOWN])}{more}."
        admin.message_user(request, text, messages.WARNING)
