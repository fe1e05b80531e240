"""What stock producers and consumers make of a broker whose disk is stuck, or full."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.broker import Broker, BrokerSettings
from tanist.protocol import ResponseCode
from tanist.store import FlushMode, StoreSettings
from tanist.store.disk import File
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Producer, StockClients
from tests.support.site import bodies, is_sent, numbered, wait_until
from tests.support.small_disk import SmallDisk, run_on_small_disk
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")


@contextmanager
def broker_in_a_thread(settings: BrokerSettings, store_settings: StoreSettings) -> Generator[None]:
    """A broker in this process, so that a test can have its disk stand still."""
    serving, stopping = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with Broker(settings, store_settings).serving():
            serving.set()
            await stopping.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    try:
        assert serving.wait(10)
        yield
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        loop.close()


def refusal_of(producer: Producer, topic: str) -> StepFailed | None:
    try:
        producer.send(topic, numbered(1))
    except StepFailed as refusal:
        return refusal
    return None


def test_a_producer_is_told_that_the_disk_is_stuck_and_goes_on_when_it_is_not(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_sync = threading.Event()
    may_sync.set()
    sync = File.sync

    def sync_when_it_may(file: File) -> None:
        assert may_sync.wait(60)
        sync(file)

    monkeypatch.setattr(File, "sync", sync_when_it_may)
    settings = BrokerSettings(
        broker_name="broker-a",
        namesrv_addr=own_names.address,
        listen_port=free_broker_port(),
        store_path_root_dir=str(tmp_path / "store"),
    )
    store_settings = StoreSettings(
        mapped_file_size_commit_log=4 << 20,
        flush_disk_type=FlushMode.SYNC_FLUSH,
        os_page_cache_busy_time_out_mills=200,
        sync_flush_timeout=1000,
    )
    with broker_in_a_thread(settings, store_settings), clients.producer(own_names.address) as producer:
        producer.send("Orders", numbered(1))
        may_sync.clear()
        try:
            # The first that finds the disk so is written, and nobody knows whether it lasts.
            (doubtful,) = producer.send("Orders", numbered(1))
            refusal = refusal_of(producer, "Orders")
        finally:
            may_sync.set()
        assert doubtful.status == "FLUSH_DISK_TIMEOUT"
        assert refusal is not None
        assert refusal.code == ResponseCode.SYSTEM_BUSY
        wait_until(lambda: is_sent(lambda: producer.send("Orders", numbered(1))))


def fill_the_disk(disk: SmallDisk, line: str) -> None:
    with (
        NameServerProcess(disk.path / "names") as names,
        BrokerProcess(
            disk.path / "broker", names.address, mappedFileSizeCommitLog=1 << 20, cleanResourceInterval=100
        ) as broker,
        StockClients(line, disk.path.parent / "clients") as clients,
        clients.producer(names.address) as producer,
        clients.push_consumer(names.address, "Readers", "Orders") as consumer,
    ):
        producer.send("Orders", numbered(5))
        assert bodies(consumer.received(5)) == bodies(numbered(5))
        disk.fill(leave_bytes=512 << 10)
        wait_until(lambda: refusal_of(producer, "Orders") is not None)
        refusal = refusal_of(producer, "Orders")
        assert refusal is not None
        assert refusal.code == ResponseCode.SERVICE_NOT_AVAILABLE
        with clients.pull_consumer(names.address, "Readers") as reader:
            pulled = [reader.pull("Orders", broker.name, queue_id, 0).messages for queue_id in range(4)]
            assert bodies(message for messages in pulled for message in messages) >= bodies(numbered(5))
        disk.free()
        wait_until(lambda: is_sent(lambda: producer.send("Orders", numbered(1))))


def fill_the_disk_4_9(disk: SmallDisk) -> None:
    fill_the_disk(disk, next(line for line in CLIENT_LINES if line.startswith("4.")))


def fill_the_disk_5(disk: SmallDisk) -> None:
    fill_the_disk(disk, next(line for line in CLIENT_LINES if line.startswith("5.")))


@pytest.mark.parametrize("scenario", [fill_the_disk_4_9, fill_the_disk_5])
@pytest.mark.takes(25)
def test_a_producer_is_told_that_the_disk_is_full_and_consumers_go_on(
    scenario: Callable[[SmallDisk], None], tmp_path: Path
) -> None:
    run_on_small_disk(scenario, tmp_path / "disk", "size=24m")
