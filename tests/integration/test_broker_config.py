"""Config files such as RocketMQ's distribution has them start a broker, where it can play their role."""

from pathlib import Path

import pytest

from tanist.protocol import ResponseCode
from tests.support.process import ForeignProcess
from tests.support.requests import send_request
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.tanist_cluster import broker_command
from tests.support.wire import Wire

MASTER = """
# Comments and blanks stand where the distribution has them.

brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
"""
MASTER_OF_A_PAIR = MASTER.replace(" = ", "=")
SYNC_MASTER_OF_A_PAIR = MASTER_OF_A_PAIR.replace("ASYNC_MASTER", "SYNC_MASTER")
SLAVE_OF_A_PAIR = MASTER_OF_A_PAIR.replace("ASYNC_MASTER", "SLAVE").replace("brokerId=0", "brokerId=1")
"""The same for a master of either kind."""
TRACE = MASTER_OF_A_PAIR.replace("broker-a", "broker-trace")
TUNED = (
    MASTER
    + """
sendMessageThreadPoolNums = 16
waitTimeMillsInSendQueue = 1000
brokerFastFailureEnable = true
osPageCacheBusyTimeOutMills = 2000
"""
)


@pytest.mark.parametrize(
    ("sample", "name", "code", "warned"),
    [
        (MASTER, "broker-a", ResponseCode.SUCCESS, ""),
        (MASTER_OF_A_PAIR, "broker-a", ResponseCode.SUCCESS, ""),
        (SYNC_MASTER_OF_A_PAIR, "broker-a", ResponseCode.SLAVE_NOT_AVAILABLE, ""),
        (SLAVE_OF_A_PAIR, "broker-a", ResponseCode.SERVICE_NOT_AVAILABLE, ""),
        (TRACE, "broker-trace", ResponseCode.SUCCESS, ""),
        (
            TUNED,
            "broker-a",
            ResponseCode.SUCCESS,
            ",sendMessageThreadPoolNums,waitTimeMillsInSendQueue",
        ),
    ],
    ids=["broker.conf", "2m", "2m-2s-sync", "2m-2s slave", "trace", "tuned"],
)
def test_a_file_of_the_distribution_starts_a_broker(
    tmp_path: Path, sample: str, name: str, code: ResponseCode, warned: str
) -> None:
    port = free_broker_port()
    config = tmp_path / "broker.conf"
    # Tests run beside each other: only the place and the port are not the sample's.
    store = tmp_path / "store"
    places = f"listenPort={port}\nstorePathRootDir={store}\nstorePathCommitLog={store}/commitlog\n"
    config.write_text(f"{sample}\n{places}")
    with ForeignProcess("broker", broker_command("-c", config), directory=tmp_path) as process:
        process.wait_for_output(f"The broker {name} serves at 127.0.0.1:{port}", timeout_s=30)
        with Wire(f"127.0.0.1:{port}") as wire:
            assert wire.ask(send_request()).code == code
        lines = [line for line in process.output().splitlines() if "settings without effect" in line]
        assert [line.endswith(warned) for line in lines] == [True] * bool(warned)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("brokerRole=SLAVE", "brokerId=0 is not allowed; use 1 or more with brokerRole=SLAVE"),
        ("brokerId=1", "brokerId=1 is not allowed; use 0 with brokerRole=ASYNC_MASTER"),
        (
            "brokerRole=MASTER",
            "brokerRole='MASTER' is not allowed; use one of ASYNC_MASTER",
        ),
        (
            "enableDLegerCommitLog=true",
            "enableDLegerCommitLog='true' is not allowed; use false: Tanist keeps no Raft log",
        ),
        ("flushDiskType=SYNC", "flushDiskType='SYNC' is not allowed; use one of ASYNC_FLUSH, SYNC_FLUSH"),
        ("fileReservedTime=two days", "fileReservedTime='two days' is not allowed; use a whole number"),
        ("deleteWhen=4am", "deleteWhen='4am' is not allowed; use hours from 00 to 23, separated by ;"),
        ("osPageCacheBusyTimeOutMills=0", "osPageCacheBusyTimeOutMills=0 is not allowed; use 1 to"),
        ("serverMaxHeldBytes=1", "serverMaxHeldBytes=1 is not allowed; use 16777216 to"),
        ("serverSocketSndBufSize=-1", "serverSocketSndBufSize=-1 is not allowed; use 0 to"),
        ("storePathCommitLog=/data/commitlog", "storePathCommitLog='/data/commitlog' is not allowed; use "),
        ("autoCreateTopicEnable=yes", "autoCreateTopicEnable='yes' is not allowed; use true or false"),
    ],
)
def test_a_wrong_value_stops_the_start_and_says_what_is_allowed(tmp_path: Path, line: str, told: str) -> None:
    config = tmp_path / "broker.conf"
    config.write_text(f"{MASTER}\n{line}\nstorePathRootDir={tmp_path / 'store'}\n")
    with ForeignProcess("broker", broker_command("-c", config), directory=tmp_path) as process:
        assert process.wait(timeout_s=30) != 0
        assert f"{config}: {told}" in process.output()
        assert "Traceback" not in process.output()
    assert not (tmp_path / "store").exists()
