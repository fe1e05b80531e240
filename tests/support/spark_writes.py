"""A stream of numbers into a topic, which stops in the middle of its batch the first time; also as a process.

python -m tests.support.spark_writes NAMESRV TOPIC FOLDER
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tanist.spark.session import spark_session
from tests.support import spark_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STOPPED = "stopped"
"""The file that is there once it has stopped."""

SETTINGS = {
    **spark_stream.SETTINGS,
    # Rows are handed on in small parts, so that a task that stops has written some of them.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}


def start_writing(
    spark: "SparkSession", namesrv: str, topic: str, folder: Path, *, dies: bool
) -> "StreamingQuery":
    """Begin with the numbers in ``folder/in``, or go on where it was."""
    stream = spark.readStream.schema("id bigint").parquet(str(folder / "in" / "*"))
    bodies = _stopping(str(folder / STOPPED), namesrv, topic, dies=dies)
    frame = stream.mapInPandas(bodies, "body string")
    options = {"namesrv": namesrv, "topic": topic, "checkpointLocation": str(folder / "checkpoint")}
    return frame.writeStream.format("rocketmq").options(**options).trigger(availableNow=True).start()


def _stopping(flag: str, namesrv: str, topic: str, *, dies: bool) -> Callable[[Any], Any]:
    """Large bodies from ids. The first time it fails once some of them are written, or waits for its end."""

    def bodies(frames: Any) -> Any:
        # It runs in another process, which does not know this module.
        import pathlib  # noqa: PLC0415
        import signal  # noqa: PLC0415
        import time  # noqa: PLC0415

        from tanist.spark.rocketmq.cluster import look_up  # noqa: PLC0415
        from tanist.spark.rocketmq.options import read_options  # noqa: PLC0415

        options = read_options({"namesrv": namesrv, "subscribe": topic})
        for frame in frames:
            deadline_s = time.monotonic() + 30
            if frame["id"].iloc[0] >= 1000 and not pathlib.Path(flag).exists():
                while not sum(state.max_offset for state in look_up(options)):
                    assert time.monotonic() < deadline_s
                pathlib.Path(flag).write_text("stopped", encoding="utf-8")
                if dies:
                    raise RuntimeError("this attempt dies")
                signal.pause()
            yield ("row " + frame["id"].astype(str) + " " + "." * 3000).to_frame("body")

    return bodies


def main(namesrv: str, topic: str, folder: str) -> None:
    spark = spark_session("local[2]", settings=SETTINGS)
    start_writing(spark, namesrv, topic, Path(folder), dies=False).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
