"""Signatures of access keys."""

from tanist.protocol.signature import is_signed, sign

SECRET = "12345678"


def test_a_signed_send_has_the_signature_rocketmq_gives_it() -> None:
    ext = {
        "a": "PG",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": "1",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": "TAGS\x01A\x02",
        "j": "0",
        "k": "false",
        "m": "false",
        "AccessKey": "RocketMQ",
    }
    assert sign(ext, b"hello", SECRET) == "3MLi306sfBasy6Goyv3PsoyzpiY="


def test_a_request_without_other_fields_is_signed_by_key_and_body() -> None:
    assert sign({"AccessKey": "RocketMQ"}, b"{}", SECRET) == "pq0tPL2lAz7bhIfEGHu4hhut1Yw="


def test_a_signature_that_is_already_there_is_not_signed() -> None:
    ext = {"AccessKey": "RocketMQ", "topic": "T"}
    assert sign({**ext, "Signature": "x"}, b"", SECRET) == sign(ext, b"", SECRET)


def test_names_sort_by_utf_16_code_units() -> None:
    # U+FF5E sorts before U+1F600 by code point, after its first surrogate by code unit.
    assert sign({"\uff5e": "1", "😀": "2"}, b"", SECRET) == sign({"a": "21"}, b"", SECRET)


def test_a_view_of_the_body_is_signed_like_its_bytes() -> None:
    assert sign({"a": "b"}, memoryview(b"body"), SECRET) == sign({"a": "b"}, b"body", SECRET)


def test_both_ways_to_sign_a_query_by_unique_key_are_right() -> None:
    ext = {"AccessKey": "RocketMQ", "topic": "T", "_UNIQUE_KEY_QUERY": "true"}
    by_new_clients = sign(ext, b"", SECRET)
    by_old_clients = sign({"AccessKey": "RocketMQ", "topic": "T"}, b"", SECRET)
    assert by_new_clients != by_old_clients
    for signature in (by_new_clients, by_old_clients):
        assert is_signed({**ext, "Signature": signature}, b"", SECRET)
        assert not is_signed({**ext, "Signature": signature}, b"", "another secret")
        assert not is_signed({**ext, "Signature": signature, "topic": "U"}, b"", SECRET)


def test_a_request_without_a_signature_is_not_signed() -> None:
    assert not is_signed({"AccessKey": "RocketMQ"}, b"", SECRET)
