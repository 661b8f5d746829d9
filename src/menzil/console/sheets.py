"""Sheets: the inner part of a page, drawn once for all viewers who may see and do the same.

Drawing a page takes its process longer than all else it does, so thirty viewers of one page would cost thirty times as
much as one. A sheet knows nothing about a person. Its template gets no name, no session and no token, and fails where
it asks for one. What differs between persons is the frame around it, which is drawn for each of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from markupsafe import Markup

#: Sheets that are kept, and how many characters they have together.
MOST, MOST_TEXT = 256, 16_000_000


@dataclass(frozen=True, slots=True)
class Sheet:
    """The inner part of a page as HTML, the title of the page, and what stands in its search line."""

    main: Markup
    title: str
    search: str = ""


class Sheets:
    """Sheets by what is on them and who may see it. Safe to share between threads."""

    def __init__(self, most: int = MOST, most_text: int = MOST_TEXT) -> None:
        self._most, self._most_text = most, most_text
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Sheet] = OrderedDict()
        self._text = 0
        self.drawn = 0

    def get(self, key: Hashable, draw: Callable[[], Sheet]) -> Sheet:
        """The sheet of this key. The key names everything that the drawing depends on."""
        with self._lock:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
        made = draw()
        with self._lock:
            self.drawn += 1
            before = self._kept.pop(key, None)
            self._text += len(made.main) - (len(before.main) if before else 0)
            self._kept[key] = made
            while len(self._kept) > self._most or (self._text > self._most_text and len(self._kept) > 1):
                _, oldest = self._kept.popitem(last=False)
                self._text -= len(oldest.main)
        return made
