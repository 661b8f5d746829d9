"""Bridges as people see them: where records come from, where they go, and what keeps them."""

from __future__ import annotations

from typing import Any

from menzil.ops import bridges
from menzil.watch.finding import Run


def listed(run: Run, limit: int, after: str) -> dict[str, Any]:
    """Return a page of bridges, by name, with the positions of each. Configs have marks for secrets."""
    found = run(bridges.bridges(limit + 1, after))
    positions: dict[str, list[dict[str, Any]]] = {}
    for row in run(bridges.bridge_positions()):
        positions.setdefault(row.pop("name"), []).append(row)
    rows = [
        {
            **one,
            "source": source(one["protocol"], one["config"]),
            "state": state(one),
            "positions": positions.get(one["name"], []),
        }
        for one in found[:limit]
    ]
    return {"bridges": rows, "next_after": rows[-1]["name"] if len(found) > limit else None}


def source(protocol: str, config: dict[str, Any]) -> str:
    """Say in one line where the records come from."""
    port = config.get("port")
    servers = config.get("servers") or [f"{config.get('host')}:{port}" if port else str(config.get("host"))]
    return f"{protocol} {', '.join(servers)} {config.get('topic') or config.get('stream') or config.get('queue')}"


def state(one: dict[str, Any]) -> str:
    """Return one word: paused, idle (no process), failing or running."""
    if one["paused"]:
        return "paused"
    if not one["processes"]:
        return "idle"
    return "failing" if one["last_error"] else "running"
