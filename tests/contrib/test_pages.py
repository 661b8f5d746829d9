"""The pages about frameworks show parts of the examples, which tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {
    "use-fastapi.md": ["fastapi_shop.py"],
    "use-sqlalchemy.md": ["sqlalchemy_outbox.py", "alembic/env.py", "alembic/versions/0001_menzil.py"],
}


@pytest.mark.parametrize("page", EXAMPLES)
def test_every_block_of_a_page_is_a_part_of_an_example(page: str) -> None:
    programs = "".join((ROOT / "examples" / name).read_text() for name in EXAMPLES[page])
    plain = re.sub(r"(?m)^ +", "", programs)  # a block may leave out the indentation of its place
    text = (ROOT / "docs" / "how-to" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    assert [block for block in blocks if re.sub(r"(?m)^ +", "", block) not in plain] == []
