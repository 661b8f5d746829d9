"""The tutorials that begin in an empty folder work. `tools/walk.py` also installs everything anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import walk

SECOND_TERMINAL = """
<!-- walk: environment -->
```sh
export ADDRESS=here
```
<!-- walk: background http://127.0.0.1:8000/ -->
```sh
python3 -m http.server 8000 --bind 127.0.0.1
```
<!-- walk: run -->
```sh
test -n "$ADDRESS"
```
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fastapi", "django", "operator"])
def test_the_reader_of_a_tutorial_arrives(name: str) -> None:
    assert walk.walk(name, is_here=True) < walk.MOST


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("<!-- walk: run -->\n```sh\nfalse\n```", "ended with 1"),
        ("<!-- walk: run -->\n```sh\necho one\n```\n<!-- walk: shows -->\n```\ntwo\n```", "The page shows 'two'"),
        ("<!-- walk: run -->\n\n```sh\ntrue\n```", "before no block"),
        (SECOND_TERMINAL, "ended with 1"),
        ("<!-- walk: rum -->\n```sh\ntrue\n```", "No step is called 'rum'"),
    ],
)
def test_a_page_that_leads_nowhere_is_noticed(tmp_path: Path, page: str, sentence: str) -> None:
    path = walk.Walk(tmp_path, {"PATH": "/usr/bin:/bin"}, is_here=False, transcript=None)
    with pytest.raises(walk.LostError, match=sentence):
        path.go(page)
