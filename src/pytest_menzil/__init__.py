"""The pytest plugin of menzil. Stands outside the package menzil: pytest imports it at every start, and nothing else.

Everything that costs time is imported by the first fixture that a test asks for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from menzil import AsyncMenzil, Menzil, Worker
    from menzil.testing.console import ServedConsole
    from menzil.testing.receiver import Receiver
    from menzil.testing.server import Server

VARIABLE = "MENZIL_TEST_DSN"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where tests may create databases."""
    text = f"a PostgreSQL in which tests may create databases; else {VARIABLE}, else an embedded one"
    parser.getgroup("menzil").addoption("--menzil-dsn", metavar="DSN", help=text)
    parser.addini("menzil_dsn", text)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known to --strict-markers."""
    what = "menzil(channels=…, endpoints=…, settings=…): what the database of this test has"
    config.addinivalue_line("markers", what)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Use the database that a `menzil_db` of the project returns; the plugin's own has said so already."""
    found = yield
    if fixturedef.argname == "menzil_db" and isinstance(found, str) and fixturedef.func.__module__ != __name__:
        used = contextmanager(_used)(found, request)
        used.__enter__()
        fixturedef.addfinalizer(lambda: used.__exit__(None, None, None))
    return found


@pytest.fixture(scope="session")
def menzil_dsn(pytestconfig: pytest.Config) -> str | None:
    """The server of the tests; None is an embedded one. Override it where a fixture of yours starts a server."""
    given: str | None = pytestconfig.getoption("--menzil-dsn")
    chosen = given or os.environ.get(VARIABLE) or pytestconfig.getini("menzil_dsn") or None
    if chosen is None:
        _refuse_misspelled()
    return chosen


def _refuse_misspelled() -> None:
    """The tests would pass on an embedded server, and no error would say that they never saw the one that was meant."""
    from difflib import get_close_matches

    from menzil.model.errors import UsageError

    for name in os.environ:
        meant = name.upper()
        # A longer name, MENZIL_TEST_DSN2 or MENZIL_TEST_DSN_REPLICA, is one that the project reads by itself.
        misspelled = not meant.startswith(VARIABLE) and get_close_matches(meant, (VARIABLE,), 1, 0.9)
        if name != VARIABLE and (meant == VARIABLE or misspelled):
            sentence = f"The variable {name} is set, and the pytest plugin of menzil does not read it."
            raise UsageError(sentence, hint=f"did you mean {VARIABLE}?")


@pytest.fixture(scope="session")
def menzil_prepare() -> Callable[[str], Any] | None:
    """Override it with a function that gets a DSN and makes your tables; it runs once, on the template."""
    return None


@pytest.fixture(scope="session")
def _menzil_server(menzil_dsn: str | None, request: pytest.FixtureRequest) -> Iterator[Server]:
    from secrets import token_hex

    from menzil.testing.server import Server

    # Processes of one run of xdist have its name, and share its templates.
    worker: dict[str, Any] = getattr(request.config, "workerinput", {})
    server = Server(menzil_dsn, str(worker.get("testrunuid") or token_hex(6)))
    yield server
    server.close()


@pytest.fixture
def menzil_db(
    _menzil_server: Server, menzil_prepare: Callable[[str], Any] | None, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The DSN of a database for this test alone, with menzil installed; MENZIL_DSN says the same meanwhile.

    Override it with a fixture that returns the DSN of a database of your own, and the other fixtures use that one.
    """
    with _menzil_server.database(menzil_prepare) as dsn:
        yield from _used(dsn, request)


@pytest.fixture
def _menzil_here(menzil_db: str, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from _used(menzil_db, request)


def _used(dsn: str, request: pytest.FixtureRequest) -> Iterator[str]:
    from menzil.testing.here import use
    from menzil.testing.marking import furnish

    node = request.node
    mark = node.get_closest_marker("menzil")
    if mark is not None and not getattr(node, "menzil_furnished", False):
        furnish(dsn, *mark.args, **mark.kwargs)
        node.menzil_furnished = True
    with use(dsn):
        yield dsn


@pytest.fixture
def mq(_menzil_here: str) -> Iterator[Menzil]:
    """A client of the database of this test."""
    from menzil import Menzil

    with Menzil(_menzil_here) as client:
        yield client


@pytest.fixture
def amq(_menzil_here: str) -> Iterator[AsyncMenzil]:
    """The same for async tests, with any plugin that runs them."""
    from menzil import AsyncMenzil
    from menzil.testing.pointing import let_go

    client = AsyncMenzil(_menzil_here)
    yield client
    let_go(client)


@pytest.fixture
def menzil_point(_menzil_here: str) -> Iterator[Callable[..., None]]:
    """Point clients and workers of your modules at the database of this test: menzil_point(shop.mq, shop.app)."""
    from menzil.testing.pointing import pointed

    with ExitStack() as stack:

        def point(*things: Menzil | AsyncMenzil | Worker) -> None:
            stack.enter_context(pointed(_menzil_here, *things))

        yield point


@pytest.fixture
def menzil_receiver(_menzil_here: str) -> Iterator[Receiver]:
    """A real HTTP receiver that checks signatures, and fails when told to."""
    from menzil import Menzil
    from menzil.testing.receiver import Receiver

    with Menzil(_menzil_here) as client:
        receiver = Receiver(client)
        yield receiver
        receiver.close()


@pytest.fixture
def menzil_console(_menzil_here: str) -> Iterator[ServedConsole]:
    """A console of the database of this test, for a browser or for a program that reads the JSON of its pages."""
    from menzil.testing.console import served_console

    with served_console(_menzil_here) as console:
        yield console
