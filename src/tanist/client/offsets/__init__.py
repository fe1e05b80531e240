"""Where a group stands: on the brokers (``remote_offsets``), or in a file (``local_offsets``).

``offset_store`` is what both are to a consumer, and the memory they share; ``offset_file`` is the file.
"""
