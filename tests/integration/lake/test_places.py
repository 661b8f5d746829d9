"""Where a lake lies: one spelling for each place, and no place that was not meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from menzil.model.errors import UsageError
from menzil.spark.lake.catalog import location, place
from menzil.spark.lake.place import address


def test_one_directory_has_one_address_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "link").symlink_to(there)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    spellings = (
        f"{there}/lake", "there/lake", "./link//lake/", "~/link/../there/lake", f"file://{there}/lake",
        f"FILE://{tmp_path}/link/lake/", f"file://{tmp_path}//not/../there/./lake",
    )  # fmt: skip
    assert {place(each) for each in spellings} == {f"file://{there}/lake"}
    assert address(tmp_path / "link" / "lake") == f"file://{there}/lake"


def test_hadoop_has_other_names_for_the_same_store() -> None:
    assert {place(f"{scheme}://bucket/lake/") for scheme in ("s3", "s3a", "s3n", "S3")} == {"s3://bucket/lake"}
    assert location("s3a://bucket/lake", "events") == "s3://bucket/lake/events"
    assert place("hdfs:///lake") == "hdfs:///lake"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "The path of the lake is empty."),
        (" ", "The path of the lake is empty."),
        ("/", "The root directory cannot be a lake."),
        ("file:///", "The root directory cannot be a lake."),
        ("file://server/lake", "file://server/lake is not a path of this machine."),
        ("file:lake", "file:lake is not a path of this machine."),
        ("s3:/bucket/lake", "s3:/bucket/lake is not a URL."),
        ("s3://", "s3:// names no bucket."),
        ("postgresql://ada:secret@db/shop", "A lake cannot be at a URL that begins with postgresql://."),
        ("~nobody-is-called-so/lake", "The path ~nobody-is-called-so/lake cannot be found: "),
        ("/data/100%", "The path of a lake cannot hold %."),
        ("/data/a\tb", "The path of a lake cannot hold control characters."),
    ],
)
def test_a_place_that_was_hardly_meant_is_refused_before_anything_is_written(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        place(given)
    assert refused.value.message.startswith(said)
    assert "secret" not in str(refused.value)
    assert not list(tmp_path.iterdir())
