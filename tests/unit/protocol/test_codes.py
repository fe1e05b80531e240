"""The numbers of the protocol."""

from tanist.protocol.codes import OUR_VERSION, Language, RequestCode, ResponseCode, Version


def test_languages_are_numbered_without_gaps() -> None:
    assert [int(language) for language in Language] == list(range(14))
    assert Language["GO"] == 9
    assert Language(13).name == "NODE_JS"


def test_only_pop_requests_are_too_big_for_a_binary_header() -> None:
    too_big = {code.name for code in RequestCode if code > 32767}
    assert too_big == {
        "POP_MESSAGE",
        "ACK_MESSAGE",
        "PEEK_MESSAGE",
        "CHANGE_MESSAGE_INVISIBLETIME",
        "NOTIFICATION",
        "POLLING_INFO",
        "POP_ROLLBACK",
        "BATCH_ACK_MESSAGE",
    }


def test_every_response_code_of_the_protocol_is_named() -> None:
    expected = {
        *range(5),
        *range(10, 30),
        *range(200, 214),
        215,
        501,
        604,
        1500,
        *range(2000, 2017),
        3001,
        3002,
        20011,  # ours
        20012,  # ours
        20013,  # ours
        *(-1000, -1002, -1004, -1006),
    }
    assert {int(code) for code in ResponseCode} == expected


def test_we_speak_a_version_that_gets_standard_json_and_sql_filters() -> None:
    assert OUR_VERSION >= Version.V4_9_4
    assert OUR_VERSION >= Version.V4_1_0_SNAPSHOT
