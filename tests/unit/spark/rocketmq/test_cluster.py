import pytest

from tanist.spark.errors import SparkError
from tanist.spark.rocketmq import cluster
from tanist.spark.rocketmq.cluster import NoTopic, look_up_patiently
from tanist.spark.rocketmq.options import read_options

OPTIONS = read_options({"namesrv": "127.0.0.1:1", "subscribe": "TopicA"})


def test_a_topic_that_is_away_is_waited_for_and_a_wrong_question_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[Exception | None] = [None, NoTopic("topic TopicA does not exist")]

    def look_up(*_asked: object, **_how: object) -> list[object]:
        if (failure := answers.pop()) is not None:
            raise failure
        return []

    monkeypatch.setattr(cluster, "look_up", look_up)
    monkeypatch.setattr(cluster, "WAITS_S", (0.0, 0.0))
    assert look_up_patiently(OPTIONS) == []
    answers += [None, SparkError("no")]
    with pytest.raises(SparkError, match="no"):
        look_up_patiently(OPTIONS)
