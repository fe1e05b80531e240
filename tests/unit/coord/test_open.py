"""Which registry a setting names, and what is said where none can be opened."""

import asyncio
import logging
import socket
import sys
from pathlib import Path

import pytest

from tanist.coord import Create, Record, RegistryUnavailable, open_registry
from tanist.coord.open import RemotePlace, SqlitePlace, ZooKeeperPlace, parse_place
from tanist.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("registry.db", SqlitePlace(Path("registry.db"))),
        ("/var/lib/tanist/registry.db", SqlitePlace(Path("/var/lib/tanist/registry.db"))),
        ("sqlite:///var/lib/tanist/registry.db", SqlitePlace(Path("/var/lib/tanist/registry.db"))),
        ("tanist://ctrl1.example:9999", RemotePlace("ctrl1.example:9999")),
        ("tanist://ctrl1.example", RemotePlace("ctrl1.example:9878")),
        ("tanist://[::1]:9878", RemotePlace("[::1]:9878")),
        ("zk://zk1:2181", ZooKeeperPlace(("zk1:2181",), "/tanist")),
        ("zk://zk1/", ZooKeeperPlace(("zk1:2181",), "/tanist")),
        (
            "zk://zk1:2181,zk2, [::1]:2183/other/tanist",
            ZooKeeperPlace(("zk1:2181", "zk2:2181", "[::1]:2183"), "/other/tanist"),
        ),
    ],
)
def test_a_setting_names_a_file_a_controller_or_an_ensemble(
    url: str, place: SqlitePlace | RemotePlace | ZooKeeperPlace
) -> None:
    assert parse_place(url) == place


@pytest.mark.parametrize(
    "url",
    [
        *("", "sqlite://", "sqlite:///", "sqlite://registry.db", "etcd://host:2379", "zk://", "zk:///tanist"),
        *("zk://zk1:none", "zk://zk1:0", "zk://zk1:65536", "zk://:2181", "zk://zk1,,zk2", "zk://zk1//tanist"),
        *("zk://zk1/tanist/", "zk://zk1/../tanist"),
        *(
            "tanist://",
            "tanist://ctrl1:0",
            "tanist://ctrl1:9878/path",
            "tanist://ctrl1/path",
            "tanist://ctrl1:9878,ctrl2:9878",
        ),
    ],
)
def test_a_setting_that_names_nothing_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(
        ConfigError, match="use a path, sqlite:///path, tanist://host:port, or zk://host:port"
    ) as raised:
        parse_place(url)
    assert (raised.value.key, raised.value.value) == ("coordinator", url)


def test_a_registry_in_a_file_is_open_for_a_block(tmp_path: Path) -> None:
    async def run() -> None:
        url = f"sqlite://{tmp_path}/new/registry.db"
        async with open_registry(url) as registry:
            await registry.commit(Create("/record", b"kept"))
        async with open_registry(url) as registry:
            assert await registry.read("/record") == Record(b"kept", 0)

    asyncio.run(run())


def test_a_zookeeper_that_nobody_finds_is_told_with_its_address(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

    async def run() -> None:
        with pytest.raises(
            RegistryUnavailable, match=f"no ZooKeeper at {address} began a session within 0.3 s"
        ):
            await open_registry(f"zk://{address}/tanist", timeout_s=0.1).__aenter__()

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    # kazoo's lines, several for each try, are for those who look for faults.
    assert caplog.text == ""


def test_without_kazoo_a_zookeeper_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kazoo", "kazoo.client", "kazoo.exceptions", "kazoo.handlers.threading"):
        monkeypatch.setitem(sys.modules, name, None)

    async def run() -> None:
        with pytest.raises(ConfigError, match=r"pip install 'tanist\[zookeeper\]'"):
            await open_registry("zk://zk1:2181/tanist").__aenter__()

    asyncio.run(run())
