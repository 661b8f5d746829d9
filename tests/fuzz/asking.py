"""Asks the database something that it may refuse as a bad value, and as nothing else."""

from __future__ import annotations

import psycopg


def refusal(conn: psycopg.Connection, query: str, *params: object) -> psycopg.errors.InvalidParameterValue | None:
    """Return the refusal, or None when there was none. Any other error is raised."""
    try:
        conn.execute(query, params)
    except psycopg.errors.InvalidParameterValue as refused:
        return refused
    return None
