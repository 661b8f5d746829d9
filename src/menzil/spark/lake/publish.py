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
from menzil.spark.lake.load import load, put_checkpoint
from menzil.spark.lake.manifest import Manifest
from menzil.spark.lake.storage import Storage

_NOTE = "prepared.json"
_ABANDONED = timedelta(days=1)

Tell = Callable[[str], None]


def now() -> str:
    """The time of a manifest."""
    return datetime.now(UTC).isoformat()


def prepare(storage: Storage, place: str, manifest: Manifest, sources: list[str]) -> None:
    """Leave the note: file number n of the manifest lies at source number n."""
    for source in sources:
        storage.sync(source)  # what a manifest will name must survive a power cut
    note = json.dumps({"manifest": json.loads(manifest.encode()), "sources": sources})
    storage.put(f"{place}/{_NOTE}", note.encode())


def finish(storage: Storage, place: str, tell: Tell = lambda _: None) -> bool:
    """Do what the note says. False when somebody else changed the lake meanwhile, and the step is taken back.

    The moves are renames one after the other, with nothing between them and the manifest: whoever reads the directory
    instead of the manifests sees part of a step for that long. Files that were replaced leave right after.
    """
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
        for directory in sorted({file.path.rsplit("/", 1)[0] for file in manifest.files}):
            storage.sync(directory)
        if not put(storage, manifest):
            _take_back(storage, place, manifest)
            return False
    tell("publish")
    if manifest.replaces:
        sweep(storage)
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
            state.take(state.number + 1, manifest)
            put_checkpoint(storage, state)
            return True
    raise LakeBusyError("Others keep publishing to this lake.")


def _take_back(storage: Storage, place: str, manifest: Manifest) -> None:
    for file in manifest.files:
        storage.remove(file.path)
    storage.remove(place)


def recover(storage: Storage, run: str | None = None) -> None:
    """Finish prepared steps; remove what this run, or anybody long ago, began without preparing it, and what is old."""
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
    sweep(storage)


def sweep(storage: Storage, keep: timedelta | None = None) -> int:
    """Remove files that were replaced, each when the time that its compaction gave readers is over; or after `keep`."""
    state, removed = load(storage), 0
    gone = {path for path in state.replaced if all(path not in table.files for table in state.tables.values())}
    if not gone:
        return 0
    there = {found.path for top in (layout.DATA, layout.EVENTS) for found in storage.list(top)}
    for path in sorted(gone & there):
        at, seconds = state.replaced[path]
        if datetime.now(UTC) - datetime.fromisoformat(at) >= (timedelta(seconds=seconds) if keep is None else keep):
            storage.remove(path)
            removed += 1
    return removed
