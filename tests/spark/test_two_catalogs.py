"""A lake is in one catalog: whoever forgets --catalog, or adds it later, does not make it a second time. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from menzil.spark.lake import LakeForeignError
from menzil.spark.lake.catalog import open_catalog
from menzil.spark.lake.register import register
from menzil.spark.lake.table import open_for_writing, open_own
from tests.spark.lake_files import begun
from tests.spark.test_foreign_catalog import catalog
from tests.spark.test_lake_commits import ids

__all__ = ["catalog"]


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("first", "second", "says", "hint"),
    [
        ("elsewhere", None, "is in the catalog elsewhere of .pyiceberg.yaml", "add --catalog elsewhere, or"),
        (None, "elsewhere", "is in the catalog of the queue's database", "leave --catalog out, or"),
    ],
)
def test_a_lake_is_not_taken_into_a_second_catalog_without_a_word(
    db: str, tmp_path: Path, first: str | None, second: str | None, says: str, hint: str
) -> None:
    place = tmp_path / "lake"
    begun(open_for_writing(place, db, catalog=first)[0])
    for opened in (open_for_writing, open_own):
        with pytest.raises(LakeForeignError, match=says) as said:
            opened(place, db, catalog=second)
        assert str(said.value.hint).startswith(hint)
    assert not open_for_writing(place, db, catalog=first)[1]
    register(open_catalog(db, second), str(place))  # who moves it says so
    found, unknown = open_for_writing(place, db, catalog=second)
    assert not unknown
    assert ids(found) == []
