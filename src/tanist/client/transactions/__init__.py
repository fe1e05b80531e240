"""Messages that consumers get only if a block succeeds.

``transactions`` is the block, ``check_backs`` answers brokers that ask what became of it. Pure:
``transaction_ends``, which says what ends which transaction.
"""
