"""A name server and a broker in this process, for the length of a block.

They live in one task of their own, in the caller's event loop or in that of a thread: a test
framework may well begin a fixture in one task and end it in another.
"""

import asyncio
import logging
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tanist.broker import Broker
from tanist.config import warn_unsupported
from tanist.nameserver import NameServer, NameServerSettings
from tanist.testing.arguments import check_settings, check_store, check_topics, naming_port

_log = logging.getLogger(__name__)

_Stop = Callable[[], object]
"""What lets a broker end that has started. Any thread may call it."""


class EmbeddedBroker:
    """A broker with its name server, for tests; RocketMQ's clients take it for one of theirs.

    It serves this machine, on ports that the system chooses, from the beginning of its block to the end.

    >>> async with EmbeddedBroker(topics=["OrderTopic"]) as broker:
    ...     async with Producer(group="orders", namesrv=broker.namesrv) as producer:
    ...         receipt = await producer.send(Message("OrderTopic", b"..."))
    >>> receipt.queue.broker_name
    'embedded'

    In tests that block, ``with`` instead of ``async with`` gives it a thread of its own. It serves once.

    >>> with EmbeddedBroker(topics={"OrderTopic": 1}) as broker:
    ...     print(broker.namesrv)
    127.0.0.1:...
    """

    def __init__(
        self,
        *,
        port: int = 0,
        topics: Mapping[str, int] | Iterable[str] = (),
        store: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Check what is given; nothing starts yet. Raises ConfigError for a wrong argument.

        ``port`` is the broker's; any other than 0 must be free, and so must the one 2 below it
        and, but for a slave, the one above it. ``topics``
        are names, or names with their number of queues; they can be sent to as soon as the block begins.
        ``store`` is a folder that stays when the block ends, for a broker that goes on with it; without
        one a folder is made, and removed. ``settings`` are a broker's config, its keys and values as text.
        """
        self._settings = check_settings({} if settings is None else settings, port=port)
        self._topics = check_topics(topics, self._settings.broker)
        self._store = check_store(store)
        self._addresses: tuple[str, str] | None = None
        self._is_used = False

    @property
    def namesrv(self) -> str:
        """The name server's address, which clients are given."""
        return self._known_addresses()[0]

    @property
    def address(self) -> str:
        """The broker's own address."""
        return self._known_addresses()[1]

    @property
    def broker_name(self) -> str:
        """What routes call the broker."""
        return self._settings.broker.broker_name

    async def __aenter__(self) -> Self:
        self._use()
        started: asyncio.Future[_Stop] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(started.set_result))
        try:
            await asyncio.wait([started, self._task], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            raise
        if not started.done():
            await self._task
        self._stop = started.result()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        await self._task

    def __enter__(self) -> Self:
        self._use()
        started, self._ended = Future[_Stop](), Future[None]()
        either: list[Future[Any]] = [started, self._ended]
        # Not one that the interpreter waits for at its end: a block may never be left.
        threading.Thread(
            target=self._run_thread, args=(started,), name="embedded-broker", daemon=True
        ).start()
        try:
            wait(either, return_when=FIRST_COMPLETED)
        except BaseException:
            started.add_done_callback(lambda done: done.result()())
            raise
        if not started.done():
            self._ended.result()
        self._stop = started.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # If the broker failed before, its event loop is gone; the failure is raised below.
        with suppress(RuntimeError):
            self._stop()
        self._ended.result()

    def _run_thread(self, started: "Future[_Stop]") -> None:
        try:
            asyncio.run(self._serve(started.set_result))
        except BaseException as error:
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(self, tell_started: Callable[[_Stop], None]) -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with self._serving():
            tell_started(partial(loop.call_soon_threadsafe, stopping.set))
            await stopping.wait()

    @asynccontextmanager
    async def _serving(self) -> AsyncGenerator[None]:
        given = self._settings
        warn_unsupported(_log, given.unknown, source=type(self).__name__)
        with tempfile.TemporaryDirectory(prefix="tanist-") as folder, naming_port():
            names = NameServer(
                NameServerSettings(listen_port=0, kv_config_path=f"{folder}/kvConfig.json"), tls=given.tls
            )
            async with names.serving():
                settings = msgspec.structs.replace(
                    given.broker,
                    namesrv_addr=names.address,
                    store_path_root_dir=str(self._store or f"{folder}/store"),
                )
                broker = Broker(
                    settings,
                    given.store,
                    limits=given.limits,
                    tls=given.tls,
                    ha=given.ha,
                    topics=self._topics,
                )
                async with broker.serving():
                    self._addresses = names.address, broker.address
                    yield

    def _use(self) -> None:
        if self._is_used:
            raise RuntimeError("this EmbeddedBroker was used before; make a new one for each block")
        self._is_used = True

    def _known_addresses(self) -> tuple[str, str]:
        if self._addresses is None:
            raise RuntimeError("an EmbeddedBroker has no address before its block begins")
        return self._addresses
