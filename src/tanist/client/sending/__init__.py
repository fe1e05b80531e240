"""Sends: ``outgoing`` makes a message ready, ``sender`` tries brokers until one has it.

Pure: ``queue_choice`` (which queue), ``faults`` (which brokers are avoided), ``attempts`` (whether to try
again), ``send_request`` (the bytes). ``in_flight`` and ``key_turns`` say whose turn it is.
"""
