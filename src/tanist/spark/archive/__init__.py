"""Messages kept for good, as Parquet that every reader understands: ``tanist spark archive``.

``sources`` say what comes next of a cluster or of a store, ``writing`` makes files of it in the workers,
``folder`` puts them into their places so that every message is there once whatever is killed when, ``job``
goes round. ``catalogue`` tells what an archive holds, ``compaction`` makes few large files of many small
ones, ``frames`` reads an archive with Spark, ``delta`` has one be a Delta table. ``layout`` and ``records``
are the words that they share.
"""
