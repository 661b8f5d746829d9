"""/messages/{id}: why it waits, its life to scale, its tries, its body, its family."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from menzil.console import drawings
from menzil.console.documents import dumps
from menzil.console.page import Page, Shown
from menzil.console.parts import Look, NotThereError, reading
from menzil.console.request import request_lines
from menzil.console.seeing import redactor, visible
from menzil.console.tree import tree
from menzil.model.errors import UsageError
from menzil.model.redact import MARK
from menzil.ops import looking, looking_messages, why
from menzil.watch import messages as watching
from menzil.watch.redaction import redacted

#: Bytes of a binary body that are shown as hex.
MOST_BYTES = 1_024


def _id(look: Look) -> int:
    given = look.path["id"]
    if not given.isascii() or not given.isdecimal() or int(given[:20]) >= 2**63:
        raise NotThereError(f"{given!r} is not the id of a message.", hint="Ids are whole numbers.")
    return int(given)


@reading(soon=True)
def message(look: Look) -> dict[str, Any]:
    """The message with its tries; and the endpoint it goes to."""
    number = _id(look)
    told = look.run(why.message_why(number))
    if told and told[0]["reason"] == "unknown":
        raise NotThereError(told[0]["sentence"])
    whole = watching.body(look.run, number)
    size = len(whole["content"]) if whole["content"] is not None else len(dumps(whole["payload"]).encode())
    found = redacted(whole, redactor(look))
    tries = look.run(looking_messages.attempts(number))
    tries = [visible(look, redacted(row, redactor(look))) for row in tries]
    state = found.pop("state")
    found["state"] = state if look.sees == "show" else None
    return {
        **visible(look, found),
        "attempts": tries,
        "size": size,
        "endpoint": look.run(looking.endpoint(found["channel"])),
    }


@reading(soon=True)
def waits(look: Look) -> list[dict[str, Any]]:
    """Why it does not move."""
    found: list[dict[str, Any]] = watching.waits(look.run, _id(look), redactor=redactor(look))["why"]
    return found


@reading()
def life(look: Look) -> dict[str, Any]:
    """What happened to it and its family."""
    return watching.life(look.run, _id(look), redactor=redactor(look))


@reading()
def in_lake(look: Look) -> dict[str, Any] | None:
    """Where it lies in the lake, if the console knows one and the message has ended."""
    number = _id(look)
    if look.lake is None:
        return None
    own = next(row for row in look.run(why.message_family(number)) if row["depth"] == 0)
    if own["status"] in ("pending", "processing"):
        return None
    from menzil.console.in_lake import place_of

    try:
        return place_of(look.lake, {"id": number, **own})
    except (OSError, ValueError) as error:  # a file that is gone, or is no Parquet file
        raise UsageError(
            f"The lake could not be read: {error}.", hint="run `menzil pipeline export --verify --lake PATH`"
        ) from error


def _prepare(shown: Shown) -> dict[str, Any]:
    found, told, lived = shown["message"], shown["why"], shown["life"]
    number = shown.path["id"]
    status = found["status"] if found else ""
    values: dict[str, Any] = {
        "title": f"{status} · message {number}" if status else f"Message {number}",
        "heading": f"Message {number}",
        "told": told[0]["sentence"] if told else "",
        "picture": None,
        "request": [],
        "of_broker": False,
        "views": None,
        "state": None,
        "trace": None,
        "now": datetime.now(UTC),
    }
    if found and lived:
        values["picture"] = drawings.life(lived["life"], found, values["now"])
    if found:
        values["views"] = _views(found)
        values["state"] = hexed(found["state"]) if found["state"] else None
        values["trace"] = _trace(found)
        if found["endpoint"]:
            values["request"] = request_lines(found["endpoint"], found)
            values["of_broker"] = found["endpoint"]["protocol"] != "http"
    if lived:
        values["family"] = sorted(lived["family"], key=lambda one: (one["depth"], one["message_id"]))
    return values


def _views(found: dict[str, Any]) -> dict[str, Any]:
    """The body as a tree, as text and as hex; headers and metadata as trees."""
    content = found["content"]
    if content == MARK.encode():
        return {"hex": None, "cut": False, "tree": None, "raw": None}
    if content is not None:
        return {"hex": hexed(content), "cut": len(content) > MOST_BYTES, "tree": None, "raw": None}
    return {"tree": tree(found["payload"]), "raw": dumps(found["payload"], 2), "hex": None, "cut": False}


def hexed(content: bytes) -> str:
    """The first bytes as hex, with the letters beside."""
    lines, content = [], content[:MOST_BYTES]
    for start in range(0, len(content), 16):
        part = content[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:06x}  {part.hex(' '):<47}  {shown}")
    return "\n".join(lines)


def _trace(found: dict[str, Any]) -> str | None:
    metadata = found["metadata"]
    parts = str(metadata.get("traceparent", "")).split("-") if isinstance(metadata, dict) else []
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 and parts[1].isalnum() else None


def _twin(shown: Shown) -> Any:
    found, lived = shown["message"] or {}, shown["life"] or {"life": None, "family": None}
    kept = {name: value for name, value in found.items() if name not in ("size", "endpoint")}
    told = {"why": shown["why"], "life": lived["life"], "family": lived["family"]}
    return {**kept, **told, **({"lake": shown["lake"]} if shown["lake"] else {})}


PAGE = Page(
    "/messages/{id}", "message.html", {"message": message, "why": waits, "life": life, "lake": in_lake}, _prepare,
    twin=_twin, nav="/messages", live=2,
)  # fmt: skip
