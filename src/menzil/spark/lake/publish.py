"""How a step becomes part of a lake, and what happens to one that was interrupted.

A step is prepared in DIR/_tmp: its files are written and verified, and a note says where they will go. From the note on
it only goes forward: files are moved to their places, the manifest is put, the place of work is removed. Each of these
may be repeated, so whoever comes next finishes what was left. Before the note, nothing has happened.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from menzil.spark.lake import layout
from menzil.spark.lake.errors import LakeBusyError
from menzil.spark.lake.manifest import Manifest, State
from menzil.spark.lake.storage import Storage

_NOTE = "prepared.json"
_ABANDONED = timedelta(days=1)

Tell = Callable[[str], None]


def load(storage: Storage) -> State:
    """Read all manifests."""
    names = [found.path for found in storage.list(layout.MANIFESTS) if _is_manifest(found.path)]
    numbered = ((int(name.rsplit("/", 1)[1][:20]), name) for name in names)
    return State.of((number, Manifest.decode(storage.read(name))) for number, name in numbered)


def _is_manifest(path: str) -> bool:
    name = path.rsplit("/", 1)[1]
    return len(name) == 25 and name[:20].isdigit() and name.endswith(".json")


def now() -> str:
    """The time of a manifest."""
    return datetime.now(UTC).isoformat()


def prepare(storage: Storage, manifest: Manifest, sources: list[str]) -> str:
    """Leave the note: file number n of the manifest lies at source number n. Returns the place of work."""
    assert manifest.month is not None
    place = layout.work(manifest.run, manifest.month)
    note = json.dumps({"manifest": json.loads(manifest.encode()), "sources": sources})
    storage.put(f"{place}/{_NOTE}", note.encode())
    return place


def finish(storage: Storage, place: str, tell: Tell = lambda _: None) -> bool:
    """Do what the note says. False when somebody else changed the lake meanwhile, and the step is taken back."""
    note = json.loads(storage.read(f"{place}/{_NOTE}"))
    manifest = Manifest.decode(json.dumps(note["manifest"]).encode())
    state = load(storage)
    if manifest.step not in state.steps:
        if not state.fits(manifest):
            _take_back(storage, place, manifest)
            return False
        for source, file in zip(note["sources"], manifest.files, strict=True):
            storage.move(source, file.path)
            tell("move")
        if not put(storage, manifest):
            _take_back(storage, place, manifest)
            return False
    tell("publish")
    storage.remove(place)
    return True


def put(storage: Storage, manifest: Manifest) -> bool:
    """Give a manifest the next number. False when it does not fit what somebody else put first."""
    for _ in range(100):
        state = load(storage)
        if manifest.step in state.steps:
            return True
        if not state.fits(manifest):
            return False
        if storage.put(layout.manifest(state.number + 1), manifest.encode()):
            return True
    raise LakeBusyError("Others keep publishing to this lake.")


def _take_back(storage: Storage, place: str, manifest: Manifest) -> None:
    for file in manifest.files:
        storage.remove(file.path)
    storage.remove(place)


def recover(storage: Storage, run: str | None = None) -> None:
    """Finish prepared steps; remove what this run, or anybody long ago, began without preparing it."""
    work = storage.list(layout.WORK)
    notes = {found.path.rsplit("/", 1)[0] for found in work if found.path.endswith(f"/{_NOTE}")}
    for place in sorted(notes):
        finish(storage, place)
    long_ago = time.time() - _ABANDONED.total_seconds()
    places: dict[str, float] = {}
    for found in work:
        place = "/".join(found.path.split("/")[:3])
        places[place] = max(places.get(place, 0.0), found.at)
    for place, at in places.items():
        if place not in notes and (at < long_ago or (run is not None and place.split("/")[1] == layout.directory(run))):
            storage.remove(place)


def sweep(storage: Storage, grace: timedelta) -> int:
    """Remove files that were replaced longer than `grace` ago: readers that began before have had that long."""
    state, removed = load(storage), 0
    for path, at in state.replaced.items():
        if (
            path not in state.files
            and datetime.now(UTC) - datetime.fromisoformat(at) >= grace
            and storage.size(path) is not None
        ):
            storage.remove(path)
            removed += 1
    return removed
