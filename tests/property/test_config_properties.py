"""Config files: any text is settings or a ConfigError, and what is written is read back."""

import contextlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tanist.config import describe, parse_properties, parse_settings
from tanist.config.properties import encode_property
from tanist.errors import ConfigError
from tanist.store import FlushMode, StoreSettings

# Mostly what the format gives a meaning to, in every combination.
tricky_text = st.text(
    st.sampled_from("\\\\\\#!=: \t\f\r\nu0dD8aé\u2028") | st.characters(exclude_categories=["Cs"])
)

# Blanks around a text are not part of it.
trimmed_text = tricky_text.map(lambda text: text.strip("".join(map(chr, range(0x21)))))


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    broker_name: str = "broker-a"
    broker_id: int = 0
    flush_disk_type: FlushMode = FlushMode.ASYNC_FLUSH
    slave_read_enable: bool = False


settings_of_all_types = st.builds(
    Settings,
    broker_name=trimmed_text,
    broker_id=st.integers(-(1 << 63), (1 << 63) - 1),
    flush_disk_type=st.sampled_from(FlushMode),
    slave_read_enable=st.booleans(),
)


@given(tricky_text)
def test_any_text_is_settings_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_properties(text, source="a.conf")


@given(st.dictionaries(tricky_text, tricky_text))
def test_written_settings_are_read_back(properties: dict[str, str]) -> None:
    text = "\n".join(encode_property(key, value) for key, value in properties.items())
    assert parse_properties(text, source="a.conf") == properties


@given(settings_of_all_types)
def test_what_is_described_can_be_loaded(settings: Settings) -> None:
    raw = parse_properties("\n".join(describe(settings)), source="-p")
    assert parse_settings(raw, Settings, source="-p") == (settings, frozenset())


@given(st.dictionaries(st.sampled_from(StoreSettings.__struct_encode_fields__), st.text()))
def test_any_value_is_taken_or_a_config_error(raw: dict[str, str]) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_settings(raw, StoreSettings, source="a.conf")[0], StoreSettings)
