"""A stream of a broker's messages into Parquet, twenty at a time, until it has all; also as a process.

python -m tests.support.spark_stream NAMESRV CHECKPOINT FOLDER
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tanist.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    # On a busy machine the 15 seconds in which Python and Java have to find each other are too few.
    "spark.python.authenticate.socketTimeout": "300s",
}


def start_stream(spark: "SparkSession", namesrv: str, checkpoint: Path, parquet: Path) -> "StreamingQuery":
    """Begin it, or go on where it was."""
    stream = spark.readStream.format("rocketmq").options(
        namesrv=namesrv, subscribe="Orders", startingOffsets="earliest", maxOffsetsPerTrigger=20
    )
    written = stream.load().writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    return written.trigger(availableNow=True).start(str(parquet))


def main(namesrv: str, checkpoint: str, parquet: str) -> None:
    spark = spark_session("local[2]", settings=SETTINGS)
    start_stream(spark, namesrv, Path(checkpoint), Path(parquet)).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
