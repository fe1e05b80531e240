import pytest

from tanist.protocol.tags import index_keys, tags_code


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("TagA", 2598919),
        (b"TagA", 2598919),
        ("", 0),
        (b"", 0),
        (None, 0),
        ("a", 97),
        ("polygenelubricants", -(2**31)),
        ("Hello World", -862545276),
    ],
)
def test_the_code_of_a_tag_is_its_java_hash_with_sign(tag: str | bytes | None, code: int) -> None:
    assert tags_code(tag) == code


def test_the_code_is_taken_over_utf_16() -> None:
    # U+1F600 is the two units D83D and DE00.
    assert tags_code("\U0001f600") == 31 * 0xD83D + 0xDE00
    assert tags_code("\U0001f600".encode()) == tags_code("\U0001f600")


def test_the_unique_id_is_indexed_first_then_each_word_of_the_keys() -> None:
    raw = b"KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02TAGS\x01TagA\x02"
    assert index_keys(raw) == ["U1", "k1", "k2"]
    assert index_keys(memoryview(raw)) == ["U1", "k1", "k2"]


def test_blanks_between_keys_make_no_empty_key() -> None:
    assert index_keys(b"KEYS\x01  k1   k2 \x02") == ["k1", "k2"]


def test_a_message_without_keys_is_not_indexed() -> None:
    assert index_keys(b"TAGS\x01TagA\x02") == []
    assert index_keys(b"") == []


def test_a_key_given_twice_is_indexed_twice_as_rocketmq_does() -> None:
    assert index_keys(b"KEYS\x01U1 U1\x02UNIQ_KEY\x01U1\x02") == ["U1", "U1", "U1"]
