import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.config import parse_properties, with_settings

FILE = """\
# The broker of the south wing.

brokerName=south
brokerPermission = 6
deleteWhen : 04 ; # not a comment
messageDelayLevel=1s 5s \\
                  10s
listenPort=10911"""


def _changed(text: str, **changes: str) -> str:
    return with_settings(text, changes, source="test")


def test_only_the_line_of_the_key_changes() -> None:
    changed = _changed(FILE, brokerPermission="4")
    assert changed == FILE.replace("brokerPermission = 6", "brokerPermission=4")


def test_a_setting_over_several_lines_is_replaced_whole() -> None:
    changed = _changed(FILE, messageDelayLevel="1s")
    assert "messageDelayLevel=1s\nlistenPort=10911" in changed


def test_a_key_that_is_not_there_comes_last() -> None:
    assert _changed(FILE, fileReservedTime="48") == FILE + "\nfileReservedTime=48\n"
    assert _changed("", fileReservedTime="48") == "fileReservedTime=48\n"


def test_of_a_key_that_stands_twice_the_last_line_stays() -> None:
    assert _changed("a=1\nb=2\na=3\n", a="4") == "b=2\na=4\n"


def test_line_ends_of_other_systems_stay() -> None:
    assert _changed("# x\r\na=1\r\nb=2\r\n", a="4") == "# x\r\na=4\nb=2\r\n"


def test_a_last_line_that_would_go_on_does_not_swallow_the_new_one() -> None:
    changed = _changed("b=1\\", a="2")
    assert parse_properties(changed, source="test") == {"b": "1", "a": "2"}


@pytest.mark.parametrize("text", ["#a=1\n", "!a=1\n", "aa=1\n", "b=a=1\n", "b=\\\na=1\n"])
def test_what_only_looks_like_the_key_is_left_alone(text: str) -> None:
    assert _changed(text, a="2") == text + "a=2\n"


@given(
    st.text(alphabet="ab=#:! \\\n\r\t", max_size=60),
    st.dictionaries(st.sampled_from(["a", "b", "ab"]), st.text(alphabet="xy =#\\", max_size=5), min_size=1),
)
def test_what_is_read_back_is_what_was_there_with_the_changes(text: str, changes: dict[str, str]) -> None:
    before = parse_properties(text, source="test")
    after = parse_properties(with_settings(text, changes, source="test"), source="test")
    assert after == before | changes
