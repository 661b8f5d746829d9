"""Every public function of the installed schema with its parameters, and who may call it: the catalog's word."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

ROLES = ("menzil_application", "menzil_worker", "menzil_monitor", "menzil_pipeline", "menzil_admin")

_FUNCTIONS = r"""
select p.proname, p.proargnames[1:p.pronargs], array(select format_type(t, null) from unnest(p.proargtypes) t),
       p.pronargs - p.pronargdefaults,
       array(select r from unnest(%s::text[]) r where has_function_privilege(r, p.oid, 'execute'))
  from pg_proc p where p.pronamespace = 'menzil'::regnamespace and p.prokind = 'f' and p.proname not like '\_%%'
 order by p.proname, p.oid::regprocedure::text"""


@dataclass(frozen=True)
class Function:
    """A function as its callers see it."""

    name: str
    parameters: tuple[tuple[str, str], ...]  # name and type, in order
    needed: int  # so many of them have no default
    roles: tuple[str, ...]


def functions(conn: psycopg.Connection) -> list[Function]:
    """Return all that do not begin with an underscore."""
    return [
        Function(name, tuple(zip(names or [], types, strict=True)), needed, tuple(roles))
        for name, names, types, needed, roles in conn.execute(_FUNCTIONS, [list(ROLES)])
    ]


def pairs(found: list[Function]) -> list[tuple[str, Function]]:
    """Return every role with every function that it may call."""
    return [(role, function) for function in found for role in function.roles]
