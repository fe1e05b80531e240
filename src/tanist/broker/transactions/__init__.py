"""Messages that wait for the end of a transaction.

``halves`` makes them and ``open_transactions`` knows which wait and for what, both pure; ``half_queue``
reads them from the log, ``ops`` and ``progress`` note which are over, ``question`` is what a producer
is asked, and ``keeper`` carries it out.
"""
