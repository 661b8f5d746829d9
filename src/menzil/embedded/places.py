"""Where the data lives, and how directories come into being."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from pathlib import Path

from menzil.embedded.account import Account, first_closed, server_account
from menzil.embedded.errors import EmbeddedError
from menzil.embedded.home import Home

HINT = "choose another directory with MENZIL_PG_DIR, or --data-dir of `menzil pg`"


def data_dir(given: Path | str | None = None) -> Path:
    """The data directory: the one given, MENZIL_PG_DIR, or the default of this user. Nothing is created."""
    chosen = given or os.environ.get("MENZIL_PG_DIR")
    if chosen:
        if "\n" in str(chosen):  # PostgreSQL writes the name into a file that has one value per line
            raise EmbeddedError("The name of a data directory holds no line breaks.", hint=HINT)
        try:
            # One directory, one server, by whichever name it is reached.
            return Path(os.path.realpath(Path(chosen).expanduser()))
        except RuntimeError as error:  # ~name of an account that does not exist
            raise EmbeddedError(f"There is no home directory for {chosen}.", hint=HINT) from error
    if os.geteuid() != 0:
        return _user_default()
    account = server_account()
    assert account is not None
    candidates = [_user_default(), *(place / "pg" for place in shared_places())]
    usable = [place for place in candidates if _fits(place, account)]
    # A server that exists wins, so that opening up a directory one day does not hide it.
    for place in usable:
        if any(home.has_cluster() for home in homes(place)):
            return place
    if not usable:
        raise EmbeddedError(f"Root has no directory that {account.name} can reach.", hint=HINT)
    return usable[0]


def shared_places() -> list[Path]:
    """Where root may put what another account has to reach. The second may be swept, so it is the last resort."""
    return [Path("/var/lib/menzil"), Path(f"/var/tmp/menzil-{os.geteuid()}")]


def homes(directory: Path) -> list[Home]:
    """The homes below a data directory, newest major version first."""
    try:
        versions = [int(path.name) for path in directory.iterdir() if path.name.isdecimal()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EmbeddedError(f"{directory} cannot be read: {error.strerror}.", hint=HINT) from error
    return [Home(directory / str(version)) for version in sorted(versions, reverse=True)]


def make_home(directory: Path, major: int) -> Home:
    """Make the home of this major version, reachable for the account of the server; only our own modes change."""
    home = Home(directory / str(major))
    account = server_account(home.data)
    if account:
        closed = first_closed(account, home.path)
        if closed:
            raise EmbeddedError(
                f"{directory} cannot be used: the account {account.name}, which runs the server for root, "
                f"may not pass through {closed}.",
                hint=f"{HINT}, outside of {closed}",
            )
    try:
        make_directories(home.path, 0o700 if account is None else 0o711)
    except OSError as error:
        raise EmbeddedError(f"{home.path} cannot be made: {error.strerror}.", hint=HINT) from error
    check_ours(home.path)
    return home


def make_directories(place: Path, mode: int) -> None:
    """Make a directory and what is missing above it, all with this mode, regardless of the umask."""
    for step in (*reversed(place.parents), place):
        if not step.exists():
            with contextlib.suppress(FileExistsError):  # another process makes it at the same time
                step.mkdir(mode=mode)
                if stat.S_IMODE(step.stat().st_mode) != mode:
                    step.chmod(mode)


def check_ours(path: Path) -> None:
    """Refuse a home that another account owns or may write to."""
    there = path.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid():
        raise EmbeddedError(f"{path} belongs to another user.", hint=f"run as its owner, or {HINT}")
    if there.st_mode & 0o022:
        raise EmbeddedError(f"Others may write to {path}.", hint=f"run `chmod go-w` on it, or {HINT}")


def claim_socket_dir(home: Home, account: Account | None) -> None:
    """Make the short directory of the socket, where one is needed, and refuse one that a stranger made first."""
    place = home.socket_dir
    if place == home.data:
        return
    owner = os.geteuid() if account is None else account.uid
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
        if account:
            os.chown(place, account.uid, account.gid)
    there = place.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != owner or stat.S_IMODE(there.st_mode) != 0o700:
        raise EmbeddedError(
            f"{place}, the place for the server's socket, belongs to another user or is open to others.",
            hint=f"remove it, or give the server a data directory with a shorter path ({HINT})",
        )


def _user_default() -> Path:
    base = Path(os.environ.get("XDG_DATA_HOME") or "")
    if not base.is_absolute():  # the specification says to ignore a relative one
        try:
            # An empty HOME, as some schedulers of jobs set it, would mean the root directory.
            home = Path.home() if os.environ.get("HOME", "?") else Path(pwd.getpwuid(os.geteuid()).pw_dir)
        except (RuntimeError, KeyError) as error:
            raise EmbeddedError("This user has no home directory.", hint=HINT) from error
        base = home / ".local" / "share"
    return Path(os.path.realpath(base)) / "menzil" / "pg"


def _fits(place: Path, account: Account) -> bool:
    """Whether root can make or use this directory for the account, and no other account can move it."""
    there = [step for step in (place, *place.parents) if step.exists()]
    if not os.access(there[0], os.W_OK) or first_closed(account, place):
        return False
    ours = [there[0], place.parent, *(home.path for home in homes(place))]
    return all(path.lstat().st_uid == 0 for path in ours if path.exists())
