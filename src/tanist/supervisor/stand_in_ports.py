"""The ports of a stand-in, and who called there: each is held until a broker is read, and led to it then.

What a caller says first is read, and no more until it is led: the rest waits in the system's buffers.
"""

import asyncio
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial

from tanist.coord import Record
from tanist.model.reading import BadReadingRecord, decode_read_record, read_record_path
from tanist.supervisor.kept_registry import KeptRegistry
from tanist.supervisor.pipe import CHUNK_BYTES, connect, pipe, prepare
from tanist.supervisor.stand_in import Action, End, LeadTo, StandIn, is_turned_away

_LOOK_S = 0.25
_CONNECT_S = 3.0

_log = logging.getLogger(__name__)


class StandInPorts:
    """The shell of one StandIn."""

    def __init__(self, machine: StandIn, group: str, kept: KeptRegistry, *, most_callers: int) -> None:
        """Of more callers than ``most_callers`` the later ones are closed."""
        self._machine = machine
        self._group = group
        self._kept = kept
        self._most_callers = most_callers
        self._loop = asyncio.get_running_loop()
        self._has_reader = asyncio.Event()
        self._is_over = asyncio.Event()
        self._callers: set[asyncio.Task[None]] = set()
        self._led: set[asyncio.Task[None]] = set()
        """Those who are connected to the reader, or about to be."""
        self._connected = 0

    async def serve(self, ports: dict[socket.socket, int], *, asked: asyncio.Event) -> None:
        """Take who comes to these ports. Each has with it how far below the reader's port its callers go."""
        async with asyncio.TaskGroup() as tasks:
            helping = [
                tasks.create_task(self._kept.follow(read_record_path(self._group), self._on_record)),
                tasks.create_task(self._look()),
                tasks.create_task(self._end_when(asked)),
            ]
            for port, distance in ports.items():
                self._loop.add_reader(port, self._accept, tasks, port, distance)
            try:
                await self._is_over.wait()
            finally:
                for port in ports:
                    self._loop.remove_reader(port)
                for task in (*helping, *self._callers):
                    task.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self._act(self._machine.on_time(now_s=self._loop.time()))

    async def _end_when(self, asked: asyncio.Event) -> None:
        await asked.wait()
        self._act([End("it is asked to stop")])

    def _on_record(self, found: Record | None) -> None:
        try:
            record = decode_read_record(found.value) if found is not None else None
        except BadReadingRecord as error:
            _log.warning("record not understood group=%s error=%s", self._group, error)
            return
        self._act(self._machine.on_record(record, now_s=self._loop.time()))

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case LeadTo(reader):
                    _log.info(
                        "stand-in leads group=%s reader=%s callers=%d",
                        *(self._group, reader, len(self._callers)),
                    )
                    for task in self._led:
                        task.cancel()
                    self._has_reader.set()
                case End(reason):
                    _log.info("stand-in ended group=%s reason=%s", self._group, reason)
                    self._is_over.set()

    def _accept(self, tasks: asyncio.TaskGroup, port: socket.socket, distance: int) -> None:
        try:
            caller, _ = port.accept()
        except OSError as error:
            # The caller is gone already, or there are too many files: the others are still looked after.
            _log.debug("caller not accepted error=%s", error)
            return
        if len(self._callers) >= self._most_callers:
            caller.close()
            return
        task = tasks.create_task(self._serve(caller, distance))
        self._callers.add(task)
        task.add_done_callback(partial(self._on_done, caller))

    def _on_done(self, caller: socket.socket, task: asyncio.Task[None]) -> None:
        # Not by the task itself: it may be cancelled before it begins.
        caller.close()
        self._callers.discard(task)
        self._led.discard(task)

    async def _serve(self, caller: socket.socket, distance: int) -> None:
        """Lead one caller. Its task is cancelled to cut it."""
        with suppress(OSError, TimeoutError):
            prepare(caller)
            said = await self._loop.sock_recv(caller, CHUNK_BYTES)
            if not said or is_turned_away(said):
                return
            await self._has_reader.wait()
            reader = self._machine.reader
            assert reader is not None, "whoever is led is led to somebody"
            task = asyncio.current_task()
            assert task is not None
            self._led.add(task)
            async with asyncio.timeout(_CONNECT_S):
                callee = await connect(reader, port_distance=distance)
            with callee, self._counted():
                await pipe(caller, callee, said)

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Have the machine know that one more is connected to the reader."""
        self._connected += 1
        self._machine.on_led(self._connected, now_s=self._loop.time())
        try:
            yield
        finally:
            self._connected -= 1
            self._machine.on_led(self._connected, now_s=self._loop.time())
