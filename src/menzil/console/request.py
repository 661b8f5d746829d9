"""A try as the deliverer would send it, with marks in place of secrets: a request, or what a broker gets.

Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from menzil.model.secret_paths import is_secret_header
from menzil.watch.destination import destination

#: Stands for what only the worker knows.
SECRET = "(secret)"


def request_lines(endpoint: Mapping[str, Any], message: Mapping[str, Any]) -> list[str]:
    """The request line and its headers; of a broker, where it goes and what goes with it."""
    if endpoint["protocol"] != "http":
        return _published(endpoint, message)
    config = endpoint["config"] or {}
    url = urlsplit(str(config.get("url", "")))
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = [f"{config.get('method') or 'POST'} {path} HTTP/1.1", f"host: {url.netloc}"]
    headers = {"content-type": "application/json" if message["content"] is None else "application/octet-stream"}
    headers |= {"webhook-id": str(message["id"]), "webhook-timestamp": "(time of the try)"}
    headers |= {str(name).lower(): str(value) for name, value in (message["headers"] or {}).items()}
    headers |= {str(name).lower(): _shown(name, value) for name, value in (config.get("headers") or {}).items()}
    if config.get("signing"):
        headers["webhook-signature"] = f"v1,{SECRET}"
    kind = (config.get("auth") or {}).get("type")
    if kind:
        headers["authorization"] = f"{kind} {SECRET}"
    trace = (message["metadata"] or {}).get("traceparent") if isinstance(message["metadata"], Mapping) else None
    if trace:
        headers["traceparent"] = str(trace)
    return lines + [f"{name}: {value}" for name, value in sorted(headers.items())]


def _published(endpoint: Mapping[str, Any], message: Mapping[str, Any]) -> list[str]:
    config = endpoint["config"] or {}
    place = destination(endpoint["protocol"], config) or endpoint["protocol"]
    told = {"id": message["id"], "ordering key": message["ordering_key"], "correlation id": message["correlation_id"]}
    headers = {str(name).lower(): str(value) for name, value in (message["headers"] or {}).items()}
    headers |= {str(name).lower(): _shown(name, value) for name, value in (config.get("headers") or {}).items()}
    lines = [f"to {place}", *(f"{name}: {value}" for name, value in told.items() if value is not None)]
    return lines + [f"header {name}: {value}" for name, value in sorted(headers.items())]


def _shown(name: str, value: Any) -> str:
    return str(value) if isinstance(value, str) and not is_secret_header(name) else SECRET
