"""``spark.read.format("commitlog")``: a store's files, without a broker.

``planning`` decides on the driver which parts of which files are read, ``walking`` and ``by_queue`` read
them in the Python workers, ``wanted`` knows which records are wanted, ``source`` is what Spark sees.
"""
