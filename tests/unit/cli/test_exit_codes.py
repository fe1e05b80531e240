import pytest

from tanist.admin.refused import NotThere, Unsafe
from tanist.admin.resets.progress import Outcome
from tanist.cli.exit_codes import MEANINGS, Exit, exit_code_of, in_one_line
from tanist.errors import ConnectFailed, MQError, RequestTimeout, ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.response_errors import NoPermission, RequestNotSupported, TopicNotFound


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TopicNotFound(17, "no such topic"), Exit.NOT_FOUND),
        (NotThere("no such cluster"), Exit.NOT_FOUND),
        (ResponseError(ResponseCode.BROKER_NOT_EXIST, "no broker"), Exit.NOT_FOUND),
        (NoPermission(16, "no"), Exit.NOT_ALLOWED),
        (RequestNotSupported(3, "no"), Exit.NOT_SUPPORTED),
        (ConnectFailed("h:1", "refused"), Exit.NO_ANSWER),
        (RequestTimeout("h:1", 28, 5), Exit.NO_ANSWER),
        (Unsafe("not in step"), Exit.UNSAFE),
        (ResponseError(1, "oh"), Exit.FAILED),
    ],
)
def test_each_kind_of_failure_has_its_number(error: MQError, code: Exit) -> None:
    assert exit_code_of(error) is code


def test_an_error_is_one_line_with_the_way_out() -> None:
    line = in_one_line(TopicNotFound(17, "no broker has\n the topic"))
    assert line == "no broker has the topic (response code 17); tanist admin topicList shows the topics"


def test_every_code_has_a_meaning_and_those_of_resets_are_the_same() -> None:
    assert set(MEANINGS) == set(Exit)
    assert {outcome.name: outcome.value for outcome in Outcome}.items() <= {
        code.name: code.value for code in Exit
    }.items()
