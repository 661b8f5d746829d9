"""Read what a lake is: its latest checkpoint, and the manifests after it."""

from __future__ import annotations

from menzil.spark.lake import layout
from menzil.spark.lake.errors import LakeError
from menzil.spark.lake.manifest import Manifest
from menzil.spark.lake.state import State
from menzil.spark.lake.storage import Storage

#: Every so many manifests one checkpoint: a lake is opened with fewer reads than this, however old it is.
EVERY = 50
#: Checkpoints that stay for whoever has just listed them.
KEPT = 2


def load(storage: Storage, *, checkpoints: bool = True) -> State:
    """What all manifests say. Driver.

    A checkpoint says nothing that the manifests do not; one that cannot be read is as good as none.
    """
    names = [found.path for found in storage.list(layout.MANIFESTS)]
    state = State()
    for number in sorted(_numbers(names, "checkpoint-"), reverse=True) if checkpoints else ():
        try:
            state = State.decode(storage.read(layout.checkpoint(number)))
            break
        except LakeError:  # of a later format
            raise
        except Exception:
            continue
    for number in sorted(_numbers(names, "")):
        if number > state.number:
            state.take(number, Manifest.decode(storage.read(layout.manifest(number))))
    return state


def _numbers(paths: list[str], prefix: str) -> list[int]:
    names = [path.rsplit("/", 1)[1].removesuffix(".json") for path in paths if path.endswith(".json")]
    rests = [name[len(prefix) :] for name in names if name.startswith(prefix)]
    return [int(rest) for rest in rests if len(rest) == 20 and rest.isdigit()]


def put_checkpoint(storage: Storage, state: State) -> None:
    """Leave a checkpoint where one is due. Whoever is interrupted before leaves it to the next: manifests stay."""
    if state.number % EVERY:
        return
    storage.put(layout.checkpoint(state.number), state.encode())
    numbers = sorted(_numbers([found.path for found in storage.list(layout.MANIFESTS)], "checkpoint-"))
    for number in numbers[:-KEPT]:
        storage.remove(layout.checkpoint(number))
