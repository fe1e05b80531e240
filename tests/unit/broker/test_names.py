import pytest

from tanist.broker.names import check_group_name, check_topic_name
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode


@pytest.mark.parametrize("topic", ["T", "a-b_C|9%", "x" * 127, "%RETRY%" + "x" * 248, "%DLQ%" + "x" * 250])
def test_a_topic_may_have_letters_digits_and_four_signs(topic: str) -> None:
    check_topic_name(topic)


@pytest.mark.parametrize("topic", ["", "  ", "a b", "a.b", "..", "a/b", "é", "T\n", "a@b"])
def test_a_topic_has_no_other_characters(topic: str) -> None:
    with pytest.raises(ResponseError) as refusal:
        check_topic_name(topic)
    assert refusal.value.code == ResponseCode.INVALID_PARAMETER


@pytest.mark.parametrize("topic", ["x" * 128, "%RETRY%" + "x" * 249, "%DLQ%" + "x" * 251])
def test_a_topic_that_is_too_long_is_refused(topic: str) -> None:
    with pytest.raises(ResponseError, match=f"has {len(topic)} characters"):
        check_topic_name(topic)


def test_a_group_has_at_most_120_characters() -> None:
    check_group_name("g" * 120)
    with pytest.raises(ResponseError, match="at most 120"):
        check_group_name("g" * 121)


def test_a_remark_shows_only_the_beginning_of_a_very_long_name() -> None:
    with pytest.raises(ResponseError) as refusal:
        check_group_name("g" * 100_000)
    assert len(refusal.value.remark) < 400
