"""The text of plain_acl.yml."""

import pytest

from tanist.broker.acl.plain_acl import MAX_FILE_BYTES, PlainAcl, parse_plain_acl
from tests.support.acl import PLAIN_ACL, SECRET


def parse(text: str) -> PlainAcl:
    found = parse_plain_acl(text.encode())
    assert found is not None
    return found


def test_a_file_of_rocketmq_is_read_whole() -> None:
    found = parse(PLAIN_ACL)
    assert found.global_white_remote_addresses == ["10.10.103.*"]
    producer, operator = found.accounts
    assert (producer.access_key, producer.secret_key, producer.admin) == ("producer-key", SECRET, False)
    assert (producer.white_remote_address, producer.default_group_perm) == ("", "SUB")
    assert producer.topic_perms == ["Denied=DENY", "Both=PUB|SUB", "Written=PUB", "Read=SUB"]
    assert (operator.admin, operator.default_topic_perm, operator.topic_perms) == (True, "DENY", [])


@pytest.mark.parametrize("secret", ["12345678", "01234567", "1_000_000", "12:30:45", "0x1234567", "1e10000"])
def test_a_secret_is_what_is_written_even_if_yaml_has_a_number_for_it(secret: str) -> None:
    found = parse(f"accounts:\n  - accessKey: somebody\n    secretKey: {secret}\n")
    assert found.accounts[0].secret_key == secret


def test_what_mqadmin_has_written_is_read() -> None:
    found = parse(
        "accounts:\n"
        "- !!org.apache.rocketmq.common.PlainAccessConfig\n"
        "  accessKey: somebody\n"
        "  secretKey: '12345678'\n"
        "  whiteRemoteAddress: null\n"
        "  topicPerms: null\n"
        "dataVersion:\n"
        "- {counter: 3, timestamp: 1700000000000}\n"
    )
    assert (found.accounts[0].white_remote_address, found.accounts[0].topic_perms) == ("", [])
    assert found.data_version == [{"counter": "3", "timestamp": "1700000000000"}]


@pytest.mark.parametrize("text", ["", "# A comment.\n", "accounts:\n", "~"])
def test_a_file_may_hold_nothing(text: str) -> None:
    assert parse_plain_acl(text.encode()) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("accounts: [", "line 1 is no YAML"),
        ("a: 1\n\tb: 2\n", "line 2 is no YAML"),
        ("accounts: &x [*y]", "line 1 is no YAML"),
        ("\x00", "no YAML"),
        ("[" * 5000, "no YAML"),
        ("- a", "Expected `object`"),
        ("accounts: 5", r"Expected `array`.*\$\.accounts"),
        ("acounts: []", "unknown field `acounts`"),
        ("accounts:\n - {accessKey: somebody, secretKey: 12345678, topicPerm: [T=PUB]}", "topicPerm"),
        ("accounts:\n - {accessKey: somebody}", "missing required field `secretKey`"),
        (
            "accounts:\n - {accessKey: somebody, secretKey: 12345678, admin: yes please}",
            r"accounts\[0\]\.admin",
        ),
        ("x: " + "y" * MAX_FILE_BYTES, "more than 1048576"),
    ],
)
def test_a_file_that_makes_no_sense_says_where(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_plain_acl(text.encode())


@pytest.mark.parametrize(
    "text", ["accounts:\n - secretKey: sesame99\n  x", "secretKey: [sesame99", "sesame99: *a"]
)
def test_no_error_holds_the_line_it_is_about(text: str) -> None:
    with pytest.raises(ValueError, match="no YAML") as refused:
        parse_plain_acl(text.encode())
    assert "sesame99" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_text_that_is_no_utf_8_is_no_yaml() -> None:
    with pytest.raises(ValueError, match="no YAML"):
        parse_plain_acl(b"accounts: \xff\xfe\xfd")
