"""Settings as text again, and the page that lists the store's."""

import re
from pathlib import Path

import msgspec

from tanist.config import Secret, describe, parse_properties, parse_settings, secret_values, to_properties
from tanist.ha.settings import HaSettings
from tanist.store import FlushMode, StoreSettings

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


class LinkSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    ha_listen_port: int = 10912
    broker_name: str = "broker-a"
    slave_read_enable: bool = False
    flush_disk_type: FlushMode = FlushMode.ASYNC_FLUSH
    ha_secret: Secret = ""


def test_every_key_has_its_line_sorted_by_key() -> None:
    assert describe(LinkSettings()) == [
        "brokerName=broker-a",
        "flushDiskType=ASYNC_FLUSH",
        "haListenPort=10912",
        "haSecret=",
        "slaveReadEnable=false",
    ]


def test_the_default_stands_above_a_value_that_is_another() -> None:
    settings = LinkSettings(broker_name="b\\c", slave_read_enable=True, flush_disk_type=FlushMode.SYNC_FLUSH)
    assert describe(settings) == [
        "# default: brokerName=broker-a",
        r"brokerName=b\\c",
        "# default: flushDiskType=ASYNC_FLUSH",
        "flushDiskType=SYNC_FLUSH",
        "haListenPort=10912",
        "haSecret=",
        "# default: slaveReadEnable=false",
        "slaveReadEnable=true",
    ]


def test_several_structs_are_described_as_the_one_file_they_came_from() -> None:
    lines = describe(StoreSettings(), LinkSettings())
    assert lines == sorted(set(describe(StoreSettings()) + describe(LinkSettings())))


def test_a_secret_is_shown_to_be_set_and_not_shown() -> None:
    settings = LinkSettings(ha_secret="correct horse")
    lines = describe(settings)
    assert "# haSecret=******" in lines
    assert to_properties(settings)["haSecret"] == "******"
    assert "horse" not in "\n".join(lines)


def test_the_stand_in_of_a_secret_never_becomes_the_secret() -> None:
    text = "\n".join(describe(LinkSettings(ha_secret="correct horse", ha_listen_port=1)))
    loaded, unknown = parse_settings(parse_properties(text, source="-p"), LinkSettings, source="-p")
    assert loaded == LinkSettings(ha_listen_port=1)
    assert unknown == frozenset()


def test_the_secrets_of_settings_can_be_asked_for() -> None:
    assert secret_values(StoreSettings(), LinkSettings()) == []
    assert secret_values(StoreSettings(), LinkSettings(ha_secret="correct horse")) == ["correct horse"]


def test_the_page_lists_the_keys_of_store_and_replication_with_their_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == to_properties(StoreSettings()) | to_properties(HaSettings())
    assert len(rows) == len(dict(rows))
