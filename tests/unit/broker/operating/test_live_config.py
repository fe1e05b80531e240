import errno
import os
from pathlib import Path

import msgspec
import pytest

from tanist.broker.operating.config_file import ConfigFile
from tanist.broker.operating.live_config import LiveConfig
from tanist.broker.settings import UPDATABLE_KEYS, BrokerSettings
from tanist.config import to_properties
from tanist.config.properties import MAX_FILE_BYTES
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.remoting import ServerLimits, TlsSettings
from tanist.store import StoreSettings

TEXT = "# Ours.\nbrokerPermission=6\nfileReservedTime=72\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text(TEXT)
    return path


@pytest.fixture
def config(path: Path) -> LiveConfig:
    return LiveConfig(BrokerSettings(), StoreSettings(), ServerLimits(), file=ConfigFile(path))


def _refusal(config: LiveConfig, **changes: str) -> ResponseError:
    before = (config.broker, config.store, config.data_version)
    with pytest.raises(ResponseError) as refused:
        config.update(changes, now_ms=1)
    assert (config.broker, config.store, config.data_version) == before
    return refused.value


def test_all_changes_are_made_and_told_and_get_a_new_version(config: LiveConfig) -> None:
    told: list[tuple[int, int]] = []
    config.on_change(lambda: told.append((config.broker.broker_permission, config.store.file_reserved_time)))
    config.update({"brokerPermission": "4", "fileReservedTime": "48"}, now_ms=77)
    assert told == [(4, 48)]
    assert (config.data_version.counter, config.data_version.timestamp_ms) == (1, 77)
    assert config.properties()["brokerPermission"] == "4"


def test_the_file_follows(config: LiveConfig, path: Path) -> None:
    path.chmod(0o600)
    config.update({"brokerPermission": "4", "slaveReadEnable": "true"}, now_ms=1)
    assert path.read_text() == "# Ours.\nbrokerPermission=4\nfileReservedTime=72\nslaveReadEnable=true\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_link_to_the_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.conf"
    link.symlink_to(path)
    LiveConfig(BrokerSettings(), StoreSettings(), file=ConfigFile(link)).update(
        {"brokerPermission": "4"}, now_ms=1
    )
    assert link.is_symlink()
    assert "brokerPermission=4" in path.read_text()


def test_a_broker_without_a_file_changes_all_the_same() -> None:
    config = LiveConfig(BrokerSettings(), StoreSettings())
    config.update({"brokerPermission": "4"}, now_ms=1)
    assert config.broker.broker_permission == 4


@pytest.mark.parametrize(
    ("key", "value"), [("fileReservedTime", "x"), ("brokerPermission", "8"), ("deleteWhen", "25")]
)
def test_one_wrong_value_and_nothing_is_changed(config: LiveConfig, path: Path, key: str, value: str) -> None:
    refusal = _refusal(config, longPollingEnable="false", **{key: value})
    assert refusal.code == ResponseCode.SYSTEM_ERROR
    assert key in refusal.remark
    assert path.read_text() == TEXT


def test_an_unknown_key_is_refused_by_name(config: LiveConfig, path: Path) -> None:
    refusal = _refusal(config, longPollingEnable="false", noSuchKey="1")
    assert refusal.code == ResponseCode.SYSTEM_ERROR
    assert "noSuchKey" in refusal.remark
    assert path.read_text() == TEXT


@pytest.mark.parametrize("key", ["storePathRootDir", "namesrvAddr", "listenPort", "maxMessageSize"])
def test_what_can_not_change_while_it_runs_is_refused_by_name(config: LiveConfig, key: str) -> None:
    refusal = _refusal(config, longPollingEnable="false", **{key: "1"})
    assert refusal.code == ResponseCode.NO_PERMISSION
    assert key in refusal.remark


def test_black_listed_keys_are_refused_whatever_else_is_asked() -> None:
    config = LiveConfig(BrokerSettings(config_black_list="brokerPermission; rocketmqHome"), StoreSettings())
    for key in ("brokerPermission", "rocketmqHome"):
        assert _refusal(config, **{key: "4"}).code == ResponseCode.NO_PERMISSION
    assert _refusal(LiveConfig(BrokerSettings(), StoreSettings()), brokerConfigPath="/x").code == 16


def test_a_file_that_can_not_be_written_leaves_everything_as_it_was(config: LiveConfig, path: Path) -> None:
    path.unlink()
    refusal = _refusal(config, brokerPermission="4")
    assert refusal.code == ResponseCode.SYSTEM_ERROR
    assert str(path) in refusal.remark


@pytest.mark.parametrize("value", ["04;\r05", "04;\x0005", "04;\x8505", "04;\u202805", "04;" * 1_400])
def test_a_value_that_does_not_fit_on_a_line_is_refused(config: LiveConfig, path: Path, value: str) -> None:
    refusal = _refusal(config, deleteWhen=value)
    assert refusal.remark.startswith("nothing is changed: deleteWhen=")
    assert len(refusal.remark) < 600
    assert path.read_text() == TEXT


def test_keys_of_any_length_make_no_long_remark(config: LiveConfig) -> None:
    assert len(_refusal(config, **{"k" * 100_000: "1"}).remark) < 600


def test_a_file_that_would_become_too_long_to_be_read_stays(config: LiveConfig, path: Path) -> None:
    text = TEXT + "#" * (MAX_FILE_BYTES - len(TEXT))
    path.write_text(text)
    assert str(MAX_FILE_BYTES) in _refusal(config, slaveReadEnable="true").remark
    assert path.read_text() == text


@pytest.mark.parametrize("broken", ["fsync", "fchmod"])
def test_a_write_that_fails_leaves_nothing_behind(
    config: LiveConfig, path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, broken, fail)
        assert "Input/output error" in _refusal(config, brokerPermission="4").remark
    assert path.read_text() == TEXT
    assert list(path.parent.iterdir()) == [path]


def test_the_file_keeps_its_rights_whatever_the_umask(config: LiveConfig, path: Path) -> None:
    path.chmod(0o664)
    before = os.umask(0o077)
    try:
        config.update({"brokerPermission": "4"}, now_ms=1)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o664


def test_a_group_that_can_not_be_kept_leaves_no_right_to_another(
    config: LiveConfig, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    path.chmod(0o640)
    monkeypatch.setattr(os, "fchown", refuse)
    config.update({"brokerPermission": "4"}, now_ms=1)
    assert path.stat().st_mode & 0o777 == 0o600


def test_everybody_is_told_of_a_change_even_if_somebody_fails(config: LiveConfig) -> None:
    told: list[int] = []
    failures = [OSError(errno.ENOSPC, "No space left on device")]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    config.on_change(fail_once)
    config.on_change(lambda: told.append(config.broker.broker_permission))
    with pytest.raises(ResponseError, match=r"settings are changed, but .*No space left.*same again"):
        config.update({"brokerPermission": "4"}, now_ms=1)
    assert told == [4]
    config.update({"brokerPermission": "4"}, now_ms=2)
    assert told == [4, 4]


def test_secrets_are_neither_told_nor_needed_for_a_change() -> None:
    tls = msgspec.structs.replace(TlsSettings(), tls_server_key_password="sesame")
    config = LiveConfig(BrokerSettings(), StoreSettings(), tls)
    config.update({"brokerPermission": "4"}, now_ms=1)
    assert "sesame" not in "".join(config.properties().values())
    assert config.properties()["tlsServerKeyPassword"] == "******"


def test_every_key_that_may_change_is_there() -> None:
    assert to_properties(BrokerSettings(), StoreSettings()).keys() >= UPDATABLE_KEYS
