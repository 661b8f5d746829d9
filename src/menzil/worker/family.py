"""Several worker processes under one parent: it starts them, starts again those that died, and passes signals on."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

from menzil.worker.log import Hide, Log
from menzil.worker.registry import INSTANCE
from menzil.worker.signals import stop_signals

#: Environment variable with the pipe that tells a child when its parent is gone.
LIFELINE = "MENZIL_LIFELINE"
#: Seconds before a child that died is started again; doubled each time it dies young.
SHORTEST, LONGEST, YOUNG = 0.5, 30.0, 60.0
#: The exit code of a command that could not do its work: a wrong DSN, a module that is not there.
COULD_NOT = 2


class Family:
    """The parent of `menzil worker --processes N`."""

    def __init__(self, commands: Sequence[Sequence[str]], *, reloads: bool = False) -> None:
        """`reloads` says that SIGHUP lets the children read their file of databases again."""
        self._commands = commands
        self._reloads = reloads
        self._log = Log(Hide())
        self._id = secrets.token_hex(8)
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._settled = False  # a child has lived long enough to show that the command works

    async def run(self) -> int:
        """Keep the children running until told to stop; the exit code is the worst of theirs."""
        loop = asyncio.get_running_loop()
        for number in {*stop_signals(), *((signal.SIGHUP,) if self._reloads else ())}:
            loop.add_signal_handler(number, self._signalled, number)
        # The end the children read from closes when this process ends, however it ends.
        reading, writing = os.pipe()
        try:
            keeping = (self._keep(place, command, reading) for place, command in enumerate(self._commands, 1))
            codes = await asyncio.gather(*keeping)
        finally:
            os.close(reading)
            os.close(writing)
        self._log.info("all_stopped", processes=len(self._commands))
        return max(codes)

    async def _keep(self, place: int, command: Sequence[str], lifeline: int) -> int:
        rest = SHORTEST
        while True:
            began = monotonic()
            code = await self._live(place, command, lifeline)
            if monotonic() - began > 5:
                self._settled = True
            if self._stopping.is_set() or code == 0:
                return max(0, code)
            if code == COULD_NOT and not self._settled:
                self._stop(signal.SIGTERM)
                return code
            rest = SHORTEST if monotonic() - began > YOUNG else rest
            self._log.error("child_died", place=place, exit=code, starting_again_in=rest)
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._stopping.wait()
                    return max(0, code)
            rest = min(LONGEST, rest * 2)

    async def _live(self, place: int, command: Sequence[str], lifeline: int) -> int:
        # A session of its own: a key like Ctrl-C reaches the parent alone, which passes it on.
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            # A child that is started again takes the place of the one that died in the registry, at once.
            env={**os.environ, LIFELINE: str(lifeline), INSTANCE: f"{self._id}-{place}"},
            pass_fds=(lifeline,),
            start_new_session=True,
        )
        self._children[place] = child
        self._log.info("child_started", place=place, pid=child.pid)
        if self._stopping.is_set():
            child.send_signal(signal.SIGTERM)
        code = await child.wait()
        del self._children[place]
        return code

    def _signalled(self, number: int) -> None:
        self._log.info("signal", name=signal.Signals(number).name)
        if number == signal.SIGHUP and self._reloads:
            self._pass_on(number)
        elif number != signal.SIGHUP or not self._stopping.is_set():
            self._stop(signal.SIGTERM)

    def _stop(self, number: int) -> None:
        self._stopping.set()
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.send_signal(number)
