"""One frame of `menzil top`: the numbers of the queue and its channels at one moment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from menzil.ops import looking, watch
from menzil.watch.channels import channels
from menzil.watch.curves import history
from menzil.watch.finding import Run
from menzil.watch.overview import heads

_HOUR = timedelta(hours=1)


def frame(run: Run, *, sort: str = "oldest", contains: str = "", limit: int = 200) -> dict[str, Any]:
    """Return the tiles and rates of the overview, and {"channels", "as_of"} without sparks."""
    now = run(looking.now())
    numbers = heads(run(watch.metrics()), history(run, None, now - _HOUR, now), now)
    rows = channels(run, sort=sort, contains=contains, limit=limit)["channels"]
    shown = [{name: value for name, value in row.items() if name != "spark"} for row in rows]
    return {**numbers, "channels": shown, "as_of": now}
