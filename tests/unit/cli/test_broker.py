from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.main import tanist
from tanist.errors import ConfigError, UnreadableConfig


def broker(*arguments: str | Path, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(tanist, ["broker", *map(str, arguments)], env=env)


def config_file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text("\n".join(lines))
    return path


def test_p_prints_every_key_and_the_default_where_it_differs(tmp_path: Path) -> None:
    config = config_file(tmp_path, "listenPort=20911", "brokerName=broker-a", "flushDiskType=SYNC_FLUSH")
    shown = broker("-c", config, "-p")
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[lines.index("listenPort=20911") - 1] == "# default: listenPort=10911"
    assert lines[lines.index("flushDiskType=SYNC_FLUSH") - 1] == "# default: flushDiskType=ASYNC_FLUSH"
    for line in ("brokerName=broker-a", "brokerIP1=127.0.0.1", "autoCreateTopicEnable=true"):
        assert line in lines
    assert "serverMaxConnections=20000" in lines
    assert not (tmp_path / "store").exists()


def test_what_p_prints_is_a_config_file_with_the_same_settings(tmp_path: Path) -> None:
    first = broker("-c", config_file(tmp_path, "brokerPermission=4", "longPollingEnable=false"), "-p").output
    again = broker("-c", config_file(tmp_path, first), "-p").output
    assert again == first


def test_p_prints_the_settings_of_replication_but_not_the_secret(tmp_path: Path) -> None:
    config = config_file(tmp_path, "brokerRole=SLAVE", "brokerId=1", "haSecret=correct horse battery")
    lines = broker("-c", config, "-p").output.splitlines()
    assert {"brokerRole=SLAVE", "brokerId=1", "haAuthentication=secret", "inSyncReplicas=2"} <= set(lines)
    assert "# haSecret=******" in lines


def test_name_servers_come_from_the_option_then_the_environment_then_the_file(tmp_path: Path) -> None:
    config = config_file(tmp_path, "namesrvAddr=file:1")
    environment = {"NAMESRV_ADDR": "environment:2"}
    nothing = {"NAMESRV_ADDR": ""}
    assert "\nnamesrvAddr=file:1\n" in broker("-c", config, "-p", env=nothing).output
    assert "\nnamesrvAddr=environment:2\n" in broker("-c", config, "-p", env=environment).output
    assert "\nnamesrvAddr=option:3\n" in broker("-c", config, "-p", "-n", "option:3", env=environment).output


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("listenPort=many", "listenPort"),
        ("flushDiskType=SOMETIMES", "flushDiskType"),
        ("brokerRole=SLAVE", "brokerId"),
        ("brokerId=1", "brokerId"),
        ("haListenPort=70000", "haListenPort"),
        ("haMasterAddress=10.0.0.7", "haMasterAddress"),
        ("serverMaxConnections=0", "serverMaxConnections"),
        ("namesrvAddr=nowhere", "namesrvAddr"),
    ],
)
def test_a_wrong_value_stops_the_start_with_its_key_value_and_file(
    tmp_path: Path, line: str, key: str
) -> None:
    refused = broker("-c", config_file(tmp_path, line))
    assert isinstance(refused.exception, ConfigError)
    assert refused.exception.key == key
    message = str(refused.exception)
    assert "\n" not in message
    assert line.partition("=")[2] in message
    assert "broker.conf" in message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    refused = broker("-c", tmp_path / "none.conf")
    assert isinstance(refused.exception, UnreadableConfig)
    assert "none.conf" in str(refused.exception)


def test_the_help_says_what_a_slave_is() -> None:
    shown = broker("--help")
    assert shown.exit_code == 0
    assert "brokerRole=SLAVE" in shown.output
