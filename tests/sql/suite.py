"""The official test suite of JSON Schema, draft 2020-12: it travels in the source package of `jsonschema`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

DRAFT = "tests/draft2020-12"
#: Parts of `optional` that a schema without formats, remote documents and other drafts can be asked about.
OPTIONAL = (
    "anchor", "bignum", "dependencies-compatibility", "ecmascript-regex", "float-overflow", "id", "no-schema",
    "non-bmp-regex", "refOfUnknownKeyword", "unknownKeyword",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One schema of the suite, and the values it is asked about."""

    file: str
    name: str
    schema: Any
    tests: list[dict[str, Any]]


def home(cache: Path) -> Path:
    """Return the directory of the suite, downloaded once; skips the test where no package index can be reached.

    MENZIL_JSON_SCHEMA_SUITE names a checkout of the suite instead.
    """
    if given := os.environ.get("MENZIL_JSON_SCHEMA_SUITE"):
        return Path(given)
    kept = cache / version("jsonschema")
    if not kept.exists():
        wanted = f"jsonschema=={version('jsonschema')}"
        command = ["pip", "download", "--quiet", "--no-deps", "--no-binary", "jsonschema", "--dest", str(cache), wanted]
        asked = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=120)
        found = next(iter(cache.glob("jsonschema-*.tar.gz")), None)
        if asked.returncode or found is None:
            pytest.skip(f"the suite cannot be downloaded: {asked.stderr.strip()[-200:]}")
        unpacked = cache / f"{os.getpid()}"
        with tarfile.open(found) as archive:
            archive.extractall(unpacked, filter="data")
        (unpacked / found.name.removesuffix(".tar.gz") / "json").rename(kept)
    return kept


def cases(suite: Path) -> Iterator[Case]:
    """Every schema of the draft that says something about one document."""
    files = sorted((suite / DRAFT).glob("*.json")) + [suite / DRAFT / "optional" / f"{name}.json" for name in OPTIONAL]
    for file in files:
        if file.exists():
            for group in json.loads(file.read_text(encoding="utf-8")):
                yield Case(str(file.relative_to(suite / DRAFT)), group["description"], group["schema"], group["tests"])
