"""Searches by ordering key: page after page shows every message once, live and ended, old and new."""

from __future__ import annotations

from typing import Any

import pytest

from menzil import Menzil
from menzil.watch import listing
from menzil.watch.listing import search
from tests.integration.watch.conftest import Seat


def paged(seat: Seat, line: str, **more: Any) -> list[int]:
    """The ids of all pages, in the order in which they are shown."""
    page = search(seat, line, **more)
    shown = [row["id"] for row in page["messages"]]
    while page["next_before"] is not None:
        page = search(seat, line, before=page["next_before"], **more)
        shown += [row["id"] for row in page["messages"]]
    return shown


@pytest.mark.parametrize("held", [3, 200])
def test_every_message_of_a_key_is_shown_once_whatever_a_page_holds(
    seat: Seat, mq: Menzil, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "HELD", held)
    sent = []
    for number in range(9):
        sent.append(mq.send("work", {}, ordering_key="k"))
        mq.send_batch("work", [{}] * 3)
        if number in (1, 4):
            mq.complete_many(mq.dequeue(100, 600, ["work"]))
    for limit in (2, 4, 50):
        for window in (5, 100):
            assert sorted(paged(seat, "key:k", limit=limit, window=window)) == sent, (limit, window)
    below = sent[6]
    assert sorted(paged(seat, f"key:k before:{below}", limit=2, window=5)) == sent[:6]
    first = search(seat, "key:k", limit=2)
    assert len(first["messages"]) <= 2 + held
    assert [row["id"] for row in first["messages"]] == sorted((row["id"] for row in first["messages"]), reverse=True)
