"""What a test submits to a cluster: an audit of two stores, and a read during which a broker fails.

spark-submit spark_cluster_job.py FOLDER NAMESRV TOPIC
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import tanist
from tanist.spark import register
from tanist.spark.audit.job import audit
from tanist.spark.running import on_spark


def main(folder: str, namesrv: str, topic: str) -> None:
    spark = SparkSession.Builder().appName("cluster test").getOrCreate()
    register(spark)
    home = Path(folder)
    found = audit(str(home / "store"), str(home / "copy"), run=on_spark(spark))
    context: Any = spark.sparkContext
    imported = sorted(set(context.parallelize(range(4), 4).map(_imported_from).collect()))

    def passed_on(batches: Iterator[Any]) -> Iterator[Any]:
        """Let the test know that a task has begun, and wait until it has done its worst."""
        for batch in batches:
            (home / "begun").touch()
            while not (home / "killed").exists():
                time.sleep(0.05)
            yield batch

    schema = "queueId int, queueOffset bigint"
    frame = spark.read.format("rocketmq").schema(schema).options(namesrv=namesrv, subscribe=topic).load()
    rows = frame.mapInArrow(passed_on, schema).collect()
    result = {
        "isEqual": found.is_equal,
        "imported": imported,
        "rows": sorted([row["queueId"], row["queueOffset"]] for row in rows),
    }
    (home / "result.json").write_text(json.dumps(result))
    spark.stop()


def _imported_from(_number: int) -> str:
    return str(tanist.__file__)


if __name__ == "__main__":
    main(*sys.argv[1:])
