import pytest
from pyspark.errors import AnalysisException

from tanist.spark.errors import SparkError
from tanist.spark.running import clear_errors

JAVA = """An error occurred while calling o37.save.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)"""
PYTHON = f"""{JAVA}
Traceback (most recent call last):
  File "worker.py", line 1, in main
tanist.spark.errors.SparkError: topic Orders has no queue
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: /a\n'Relation\n", "[PATH_NOT_FOUND] Path does not exist: /a"),
        (JAVA, "org.apache.spark.SparkException: Job aborted due to stage failure"),
        (PYTHON, "topic Orders has no queue"),
        ("", "it does not say why"),
    ],
)
def test_what_spark_raises_is_one_line(said: str, told: str) -> None:
    with pytest.raises(SparkError) as caught, clear_errors():
        raise AnalysisException(said)

    assert str(caught.value) == f"Spark could not do it: {told}"


def test_what_others_raise_stays_as_it_is() -> None:
    with pytest.raises(KeyError), clear_errors():
        raise KeyError("ours")
