"""A JSON document as a tree that opens and closes without a script; numbers digit by digit, redacted values marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup, escape

from menzil.console.documents import dumps
from menzil.console.texts import plain
from menzil.model.redact import MARK

#: Values of one tree, letters of one text in it, and levels that are open.
MOST, LONGEST, OPEN = 2_000, 2_000, 3
#: Levels that are nested; what lies deeper is shown as one line.
DEEPEST = 60


def tree(value: Any) -> Markup:
    """The tree; a long document is cut, the raw view has all of it."""
    left = [MOST]
    inside = "".join(_node("", value, 0, left))
    cut = Markup('<p class="help">Cut after {} values; the raw view has all of them.</p>').format(f"{MOST:,}")
    return Markup('<ul class="tree">{}</ul>{}').format(Markup(inside), cut if left[0] < 0 else "")


def _node(name: str, value: Any, depth: int, left: list[int]) -> Iterator[str]:
    left[0] -= 1
    if left[0] < 0:
        return
    key = f'<span class="jk">{_text(name)}</span>: ' if name else ""
    if isinstance(value, Mapping | list | tuple) and value and depth < DEEPEST:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        shape = f"{{{len(value)}}}" if isinstance(value, Mapping) else f"[{len(value)}]"
        opened = " open" if depth < OPEN else ""
        yield f'<li><details{opened}><summary>{key}<span class="js">{shape}</span></summary><ul>'
        for place, one in items:
            yield from _node(str(place), one, depth + 1, left)
        yield "</ul></details></li>"
    else:
        yield f"<li>{key}{_scalar(value)}</li>"


def _scalar(value: Any) -> str:
    if value == MARK:
        return '<span class="chip warn">redacted</span>'
    if isinstance(value, str):
        shown = value if len(value) <= LONGEST else value[:LONGEST] + "…"
        return f'<span class="jt">“{_text(shown)}”</span>'
    kind = "jn" if not isinstance(value, bool) and value is not None else "jb"
    return f'<span class="{kind}">{_text(dumps(value))}</span>'


def _text(text: str) -> str:
    return f"<bdi>{escape(plain(text))}</bdi>"
