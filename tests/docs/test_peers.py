"""Every peer that is compared has a page of its own, which is fair: what it does better, when to choose it, sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "explanation"
CHOOSE = (PAGES / "choose-a-queue.md").read_text()
NAMED = dict(re.findall(r"^\| \[([^\]]+)\]\(peers/([\w-]+\.md)\) \|", CHOOSE, re.MULTILINE))
#: What the table of features and the bench compare.
COMPARED = {"Celery", "procrastinate", "pg-boss", "Graphile Worker", "PGMQ", "PgQueuer", "ulak", "LonnyMQ"}


def test_every_peer_has_a_page_and_every_page_is_named() -> None:
    assert NAMED.keys() >= COMPARED
    assert set(NAMED.values()) == {page.name for page in (PAGES / "peers").glob("*.md")}


@pytest.mark.parametrize(("peer", "page"), NAMED.items())
def test_a_page_says_what_the_peer_does_better_and_when_to_choose_it(peer: str, page: str) -> None:
    text = (PAGES / "peers" / page).read_text()
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    assert [part.partition("\n")[0] for part in parts[1:]] == [
        f"What {peer} does better", "What menzil does better", "Choose",
    ]  # fmt: skip
    better, _, choose = parts[1:]
    assert len(re.findall(r"^- ", better, re.MULTILINE)) >= 3, "a peer that is compared does something better"
    assert re.search(rf"^\*\*{re.escape(peer)}\*\* ", choose, re.MULTILINE)
    assert re.search(r"^\*\*menzil\*\* ", choose, re.MULTILINE)
    assert re.search(r"^Sources: \[[^\]]+\]\(https://", choose, re.MULTILINE), "claims have a source of the peer's own"
