"""A lake whose name is mistyped is not an empty one: nobody is told that nothing is wrong with it. Without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from menzil.model.errors import UsageError
from menzil.spark import lake as lakes

SPARK: Any = None  # what is refused is refused before Spark is asked


@pytest.mark.parametrize("spelling", ["{}/none", "file://{}/none"])
def test_a_place_that_is_not_there_is_no_empty_lake(db: str, tmp_path: Path, spelling: str) -> None:
    place = spelling.format(tmp_path)
    for dsn in (None, db):
        for job in (
            lambda dsn: lakes.verify(place, dsn),
            lambda dsn: lakes.files(place, dsn),
            lambda dsn: lakes.read(SPARK, place, dsn),
            lambda dsn: lakes.events(SPARK, place, dsn),
        ):
            with pytest.raises(UsageError, match=f"There is no lake in {tmp_path}/none"):
                job(dsn)
    with pytest.raises(UsageError, match="There is no lake in"):
        lakes.verify(tmp_path, db)  # a folder without a lake: there is nothing that could be compared
    assert lakes.verify(tmp_path).files == 0
