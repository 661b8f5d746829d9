"""Filters that PostgreSQL checks for Spark: the same answer for every value, or left to Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import datasource as ds
from pyspark.sql import functions as F

from menzil.model.errors import UsageError
from menzil.spark.source.filters import Untranslatable, condition, quoted, split
from menzil.spark.source.relations import Column, Relation, relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBE = Relation(
    "probe",
    tuple(
        Column(*pair.split())
        for pair in (
            "t text",
            "i integer",
            "s smallint",
            "b bigint",
            "y boolean",
            "w timestamptz",
            "x bytea",
            "n numeric",
            "j jsonb",
        )
    ),
)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "t": [
        None,
        "",
        "a",
        "A",
        "b",
        "ä",
        "z",
        "a'b",
        "a\\b",
        "a%b_c",
        "\\'; drop table x; --",
        "日本",
        "𝄞",
        "ﬀ",
        "a b",
        "ab",
    ],
    "i": [None, 0, 1, -1, 2**31 - 1, -(2**31)],
    "s": [None, 0, 10, -10, 32767],
    "b": [None, 0, 7, 2**63 - 1, -(2**63)],
    "y": [None, True, False],
    "w": [
        None,
        NOON,
        NOON + timedelta(microseconds=1),
        NOON - timedelta(days=40000),
        datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    ],
    "x": [None, b"", b"\x00", b"\xff\x00", b"a'\\"],
    "n": [None, 0.0, 1.5, -1.5, float("nan"), float("inf"), 1e15, 0.1],
    "j": [None, '{"a": 1}', '"a\'b\\\\c"', "[]"],
}
ROWS = [{name: values[place % len(values)] for name, values in VALUES.items()} for place in range(40)]


@st.composite
def filters(draw: st.DrawFn) -> ds.Filter:
    name = draw(st.sampled_from(sorted(VALUES)))
    value = st.sampled_from(VALUES[name])
    if name == "t":
        value = value | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
    simple = (ds.EqualTo, ds.EqualNullSafe, ds.LessThan, ds.LessThanOrEqual, ds.GreaterThan, ds.GreaterThanOrEqual)
    kinds = [*simple, ds.In, ds.IsNull, ds.IsNotNull]
    if name in "tj":
        kinds += [ds.StringStartsWith, ds.StringEndsWith, ds.StringContains]
    kind = draw(st.sampled_from(kinds))
    made: ds.Filter
    if kind in (ds.IsNull, ds.IsNotNull):
        made = kind((name,))
    elif kind is ds.In:
        made = ds.In((name,), tuple(draw(st.lists(value, min_size=1, max_size=3))))
    elif kind in simple:
        made = kind((name,), draw(value))
    else:
        made = kind((name,), draw(value.filter(lambda text: text is not None)))
    return ds.Not(made) if draw(st.booleans()) else made


def as_column(given: ds.Filter) -> Any:
    """The same in the words of Spark."""
    if isinstance(given, ds.Not):
        return ~as_column(given.child)
    column = F.col(given.attribute[0])
    kind = {field.name: field.spark_type for field in PROBE.columns}[given.attribute[0]]

    def lit(value: Any) -> Any:
        return F.lit(value).cast(kind)

    match type(given).__name__:
        case "IsNull":
            return column.isNull()
        case "IsNotNull":
            return column.isNotNull()
        case "In":
            return column.isin([lit(value) for value in given.value])
        case "EqualNullSafe":
            return column.eqNullSafe(lit(given.value))
        case "StringStartsWith":
            return column.startswith(lit(given.value))
        case "StringEndsWith":
            return column.endswith(lit(given.value))
        case "StringContains":
            return column.contains(lit(given.value))
        case name:
            method = {"EqualTo": "eq", "LessThan": "lt", "LessThanOrEqual": "le", "GreaterThan": "gt"}.get(name, "ge")
            return getattr(column, f"__{method}__")(lit(given.value))


@pytest.fixture(scope="module")
def probe(server: Any, spark: SparkSession) -> Any:
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        columns = ", ".join(f"{column.name} {column.type}" for column in PROBE.columns)
        conn.execute(f"create temporary table probe (number integer, {columns})".encode())
        names = ", ".join(f"%({name})s::{PROBE.column(name).type}" for name in VALUES)
        for number, row in enumerate(ROWS):
            conn.execute(f"insert into probe values ({number}, {names})".encode(), row)
        shown = ", ".join(column.expression for column in PROBE.columns)
        rows = conn.execute(f"select number, {shown} from probe order by number".encode()).fetchall()
        frame = spark.createDataFrame(rows, f"number int, {PROBE.ddl}").coalesce(1).cache()
        yield conn, frame
        frame.unpersist()


@pytest.mark.usefixtures("compiled")
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chosen=st.lists(filters(), min_size=25, max_size=40))
def test_postgresql_and_spark_agree_on_every_filter_and_row(probe: Any, chosen: list[ds.Filter]) -> None:
    conn, frame = probe
    written = [condition(each, PROBE) for each in chosen]
    said = conn.execute(
        f"select {', '.join(f'({text})' for text in written)} from probe order by number".encode()
    ).fetchall()
    seen = frame.orderBy("number").select([as_column(each).alias(f"c{n}") for n, each in enumerate(chosen)]).collect()
    for place, each in enumerate(chosen):
        assert [row[place] for row in said] == [row[place] for row in seen], (each, written[place])


@given(text=st.text(max_size=30))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_text_breaks_out_of_its_literal(probe: Any, text: str) -> None:
    conn, _ = probe
    try:
        written = quoted(text)
    except Untranslatable:
        assert "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)
        return
    for conforming in ("on", "off"):
        conn.execute(f"set standard_conforming_strings = {conforming}")
        conn.execute("set backslash_quote = safe_encoding")
        assert conn.execute(f"select {written}::text".encode()).fetchone() == (text,)
    conn.execute("reset standard_conforming_strings")


@pytest.mark.parametrize(
    "given",
    [
        ds.EqualTo(("t",), "with\0nul"),
        ds.EqualTo(("payload", "a"), 1),
        ds.EqualTo(("w",), datetime(2026, 1, 1)),
        ds.EqualTo(("b",), 2**63),
        ds.EqualTo(("i",), "1"),
        ds.EqualTo(("y",), 1),
        ds.In(("i",), ()),
        ds.Not(ds.In(("i",), ())),
        ds.StringContains(("x",), "a"),
    ],
    ids=str,
)
def test_what_may_mean_something_else_stays_with_spark(given: ds.Filter) -> None:
    assert split([given, ds.IsNull(("i",))], PROBE) == (['"i" is null'], [given])


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="archive has no column colour") as caught:
        condition(ds.IsNull(("colour",)), relation("archive"))
    assert "ended_xid" in str(caught.value.hint)


def test_text_is_ordered_by_its_bytes_whatever_the_database_is_set_to() -> None:
    assert condition(ds.LessThan(("t",), "a"), PROBE) == '"t" collate "C" < \'a\'::text'
