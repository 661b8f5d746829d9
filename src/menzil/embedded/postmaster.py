"""One running PostgreSQL: started here as our child, or adopted from a supervisor that was killed.

Being its parent matters: a dead postmaster whose parent does not reap it keeps its pid, which blocks the next one.
Standard library alone, like everything the supervisor imports.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from menzil.embedded.cluster import NOT_DURABLE, StartError
from menzil.embedded.home import Home, answers, read, write
from menzil.embedded.plan import Plan

LOG_LIMIT = 16 * 1024 * 1024  # a longer log is put aside at the next start
PATIENCE = {signal.SIGINT: 60.0, signal.SIGQUIT: 10.0, signal.SIGKILL: 10.0}  # fast, immediate, none


class Postmaster:
    """The process, started here or before."""

    def __init__(self, plan: Plan, pid: int, child: subprocess.Popen[bytes] | None = None) -> None:
        self.plan = plan
        self.pid = pid
        self.child = child

    def is_alive(self) -> bool:
        """Whether it still runs; a child that does not is reaped by the question."""
        return self.child.poll() is None if self.child else process_lives(self.pid)

    def stop(self, first: signal.Signals = signal.SIGINT) -> None:
        """Stop it, with less and less courtesy; SIGINT sends its clients away, finishes its checkpoint and goes."""
        for number, seconds in PATIENCE.items():
            if number == first or number != signal.SIGINT:
                self._signal(number)
                deadline = time.monotonic() + seconds
                while self.is_alive() and time.monotonic() < deadline:
                    time.sleep(0.005)
            if not self.is_alive():
                return

    def _signal(self, number: signal.Signals) -> None:
        if self.child or self.plan.uid is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
        else:
            # The pid comes from a file of the server's account: its rights reach its own processes alone.
            word = number.name.removeprefix("SIG")
            command = [self.plan.tool("pg_ctl"), "kill", word, str(self.pid)]
            subprocess.run(
                command, **self.plan.process(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            )


def adopt(home: Home, plan: Plan) -> Postmaster | None:
    """The postmaster that a killed supervisor left running, if there is one."""
    recorded = home.recorded()
    if recorded is None:
        return None
    pid, port = recorded[0]
    if process_lives(pid):
        try:
            ours = _works_in(pid, home.data)
        except OSError:  # no /proc: then the process that answers on the socket is the postmaster
            ours = answers(home.socket(port))
        return Postmaster(plan, pid) if ours else None
    if answers(home.socket(port)):
        # Two containers share the directory: that pid means nothing in this one, and a second server would ruin it.
        raise StartError("Another container runs a server on this directory.", "stop that container first")
    return None


def launch(home: Home, plan: Plan) -> Postmaster:
    """Start a postmaster and return at once; home.ready() says when it accepts connections."""
    if home.postmaster_pid.exists():  # the last one did not leave in order
        _dismiss_orphans(home, plan)
    _clear_away(home)
    port = _free_port(home)
    options = {
        "config_file": str(home.settings),
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": str(home.socket_dir),
        **({} if plan.durable else NOT_DURABLE),
    }
    command = [plan.tool("postgres"), "-D", str(home.data)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    with contextlib.suppress(OSError):
        if home.log.stat().st_size > LOG_LIMIT:
            home.log.replace(home.log.with_name("server.log.1"))
    log = os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(command, **plan.process(), stdout=log, stderr=log, start_new_session=True)
    finally:
        os.close(log)
    return Postmaster(plan, child.pid, child)


def complaint(home: Home, since: int) -> str:
    """What PostgreSQL wrote into its log from this position on to say why it gave up."""
    with contextlib.suppress(OSError):
        text = home.log.read_bytes()
        lines = text[since if since <= len(text) else 0 :].decode(errors="replace").splitlines()
        for line in reversed(lines):
            for word in ("PANIC:", "FATAL:"):
                if word in line:
                    return line.partition(word)[2].strip()
        return lines[-1] if lines else "it said nothing"
    return "it left no log"


def process_lives(pid: int) -> bool:
    """Whether the process exists and is more than a zombie.

    Without /proc a zombie passes for alive; there (macOS) the first process of the system reaps every orphan at once.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError, IndexError):
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        return state not in "ZX"
    return True


def _clear_away(home: Home) -> None:
    """Remove what a dead postmaster left: files with a pid that a zombie or a stranger may have by now.

    PostgreSQL would take either for a living postmaster. If we are wrong, it still refuses to start while a process
    is attached to the shared memory that belongs to this directory.
    """
    home.postmaster_pid.unlink(missing_ok=True)
    for remains in home.socket_dir.glob(".s.PGSQL.*"):
        remains.unlink(missing_ok=True)


def _dismiss_orphans(home: Home, plan: Plan) -> None:
    """End the backends of a killed postmaster; one deep in a query would notice late and block the restart.

    Found by their working directory, so only where there is a /proc; elsewhere we try again until they are gone.
    """
    owner = os.geteuid() if plan.uid is None else plan.uid
    for number in (signal.SIGQUIT, signal.SIGKILL):
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            orphans = _processes_in(home.data, owner)
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.02)


def _processes_in(directory: Path, owner: int) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == owner and _works_in(int(process.name), directory):
                found.append(int(process.name))
    return found


def _works_in(pid: int, directory: Path) -> bool:
    """Whether it is a PostgreSQL of this data directory; all of them have it as their working directory."""
    process = Path(f"/proc/{pid}")
    return (process / "cwd").readlink() == directory and (process / "comm").read_text().startswith("postgres")


def _free_port(home: Home) -> int:
    """The port of last time, or another; below the range from which the kernel takes ports for outgoing connections."""
    candidates = [20000 + int.from_bytes(os.urandom(2)) % 12000 for _ in range(100)]
    with contextlib.suppress(OSError, ValueError):
        candidates.insert(0, int(read(home.port)))
    for port in candidates:
        if _is_free(port):
            write(home.port, str(port))
            return port
    raise OSError("no free TCP port on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
