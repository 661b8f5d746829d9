"""What a test wants to have been sent, looked for among what was sent; and the text when it was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from menzil.model.errors import UsageError
from menzil.testing.sent import ANY, Sent, check_words, differences, shown

#: How many near misses a failure shows.
NEAREST = 3
_OPEN = "A transaction that is still open is seen only through conn=: give the connection or session that sent."


@dataclass(frozen=True, slots=True)
class Wanted:
    """A channel, and what its message must be like."""

    channel: str
    payload: Any
    words: Mapping[str, Any]
    has_conn: bool

    def __post_init__(self) -> None:
        """Refuse what could never be asked."""
        if not isinstance(self.channel, str):
            raise UsageError("The first argument is the name of a channel.")
        check_words(self.words)

    def among(self, sent: Sequence[Sent]) -> list[Sent]:
        """Those that are like it."""
        return [one for one in sent if not differences(one, self.payload, self.words)]

    def __str__(self) -> str:
        said = [] if self.payload is ANY else [f"payload contains {shown(self.payload)}"]
        said += [f"{word} is {shown(value)}" for word, value in self.words.items()]
        return ", ".join(said) or "any message"

    def not_found(self, sent: Sequence[Sent], names: Sequence[str]) -> str:
        """Say that nothing like it was sent, and what came nearest."""
        if not sent:
            lines = [f"Nothing was sent to {self.channel!r}."]
            if self.channel not in names:
                near = get_close_matches(self.channel, names, 1, 0.6)
                guess = f" Did you mean {near[0]!r}?" if near else ""
                lines = [f"There is no channel {self.channel!r}.{guess}"]
        else:
            lines = [f"No message like this was sent to {self.channel!r}:", f"  {self}", *self._nearest(sent)]
        return "\n".join([*lines, *([] if self.has_conn else [_OPEN])])

    def not_so_many(self, found: Sequence[Sent], sent: Sequence[Sent], count: int) -> str:
        """Say how many there were instead."""
        lines = [f"{_messages(len(found))} sent to {self.channel!r} like this, not {count}:", f"  {self}"]
        lines += [_line(one) for one in found[:NEAREST]]
        if len(found) < count:
            others = [one for one in sent if one not in found]
            lines += [*(self._nearest(others) if others else []), *([] if self.has_conn else [_OPEN])]
        return "\n".join(lines)

    def unwanted(self, found: Sequence[Sent]) -> str:
        """Say that it was sent although it should not have been."""
        lines = [f"{_messages(len(found))} sent to {self.channel!r} like this, and none should be:", f"  {self}"]
        return "\n".join([*lines, *(_line(one) for one in found[:NEAREST])])

    def _nearest(self, sent: Sequence[Sent]) -> list[str]:
        # The newest first among equals: a test looks for what it has just sent.
        apart = [(differences(one, self.payload, self.words), one) for one in reversed(sent)]
        apart.sort(key=lambda pair: len(pair[0]))
        head = "The nearest:" if len(sent) <= NEAREST else f"The nearest of {len(sent)}:"
        return [head, *(f"  message {one.id}, {one.status}: {'; '.join(unlike)}" for unlike, one in apart[:NEAREST])]


def _messages(count: int) -> str:
    return "1 message was" if count == 1 else f"{count or 'No'} messages were"


def _line(one: Sent) -> str:
    return f"  message {one.id}, {one.status}: {shown(one.body)}"
