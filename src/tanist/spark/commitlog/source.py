"""What Spark sees of ``commitlog``: it plans on the driver and reads in the Python workers.

What is to be read is said by options, and filters that Spark would hand down are not taken. In Spark 4.2 and
4.3 all that is made of a frame shares one plan of its source: the plan of whoever handed down filters last
is read by all others too, unfiltered ones as well, and rows are missing without a word.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tanist.spark.arrow import RecordBatch
from tanist.spark.columns import FILE_COLUMNS, chosen
from tanist.spark.commitlog.options import FAILFAST, CommitLogOptions
from tanist.spark.commitlog.planning import Piece, StorePlan, plan_store
from tanist.spark.commitlog.reading import Reading, broken_line


class StorePiece(InputPartition):
    """What one task reads."""

    def __init__(self, plan: StorePlan, piece: Piece) -> None:
        super().__init__(None)
        self.plan = plan
        self.piece = piece


class CommitLogReader(DataSourceReader):
    """Reads the files of a store."""

    def __init__(self, options: CommitLogOptions, schema: StructType) -> None:
        self._options = options
        self._columns = chosen(
            FILE_COLUMNS, ((one.name, one.dataType.simpleString()) for one in schema.fields)
        )

    def partitions(self) -> list[InputPartition]:
        plan = plan_store(
            self._options.path,
            self._options.wanted,
            subscribed=self._options.subscribe,
            min_pieces=self._options.min_partitions,
        )
        bare = StorePlan(plan.root, plan.segment_bytes, [], plan.deleted, plan.origin)
        return [StorePiece(bare, piece) for piece in plan.pieces]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The batches of a partition. Spark makes one up, which is none of ours, if there are none."""
        if not isinstance(partition, StorePiece):
            return
        reading = Reading(self._columns, self._options.wanted, self._options.mode == FAILFAST)
        plan = partition.plan

        def tell(found: Any) -> None:
            # The log of a Python worker is what it writes to its standard error.
            sys.stderr.write(broken_line(plan, found) + "\n")

        yield from reading.batches(plan, partition.piece, tell)
