"""How PostgreSQL treats the queue: dead rows, broken indexes, characters it cannot store, unread parameters."""

from __future__ import annotations

from menzil.ops import doctor
from menzil.watch.finding import Finding, Run
from menzil.watch.redaction import redactor

#: Fewer dead rows than this are a moment's work.
MANY_DEAD_ROWS = 100_000


def dead_rows(run: Run) -> list[Finding]:
    """Tables whose scans wade through the dead."""
    if not run(doctor.vacuums_itself()):
        sentence = "Autovacuum is off: tables of the queue grow without end."
        repair = "alter system set autovacuum = on; alter system set track_counts = on; select pg_reload_conf();"
        return [Finding("dead rows", "critical", sentence, repair)]
    return [
        Finding(
            "dead rows",
            "warning",
            f"Table {one['name']} has {one['dead']:,} dead rows and {one['live']:,} live ones.",
            f"vacuum (analyze) menzil.{one['name']};",
        )
        for one in run(doctor.dead_rows(MANY_DEAD_ROWS))
    ]


def encoding(run: Run) -> list[Finding]:
    """Databases that cannot store every character."""
    database, encoding = run(doctor.encoding())
    if encoding == "UTF8":
        return []
    sentence = f"Database {database} has the encoding {encoding}: a message with a character outside it is refused."
    repair = "create database NAME template template0 encoding 'UTF8'; then dump this one and restore it there"
    return [Finding("encoding", "warning", sentence, repair)]


def indexes(run: Run) -> list[Finding]:
    """Indexes that the planner may not use."""
    return [
        Finding(
            "indexes",
            "critical",
            f"Index {one['name']} of {one['table']} is not valid, so nothing finds its way by it.",
            f"reindex index{'' if one['partitioned'] else ' concurrently'} menzil.{one['name']};",
        )
        for one in run(doctor.invalid_indexes())
    ]


def parameters(run: Run) -> list[Finding]:
    """Parameters set with ALTER DATABASE or ALTER ROLE: PostgreSQL takes any name with a dot, and menzil reads two."""
    found = []
    for one in run(doctor.server_parameters()):
        name, places = one["name"], [f"{kind} {one[kind]}" for kind in ("role", "database") if one[kind]]
        sentence = f"{name} is set as a server parameter of {' in '.join(places) or 'all roles'}; nothing reads it."
        setting = f"select menzil.set_setting('{name.removeprefix('menzil.')}', …);"
        repair = f"{setting} alter {' in '.join(places) or 'role all'} reset {name};"
        found.append(Finding("parameters", "warning", sentence, repair))
    return found


def redaction(run: Run) -> list[Finding]:
    """Patterns of the setting redact that cannot be read: until they are changed, everything is hidden."""
    return [
        Finding(
            "redaction",
            "warning",
            f"The setting redact cannot be read, so everything is hidden: {fault.message}",
            "menzil settings set redact PATTERNS, or menzil settings set redact default",
        )
        for fault in redactor(run).faults
    ]
