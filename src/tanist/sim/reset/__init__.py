"""A group of consumers that is moved to other offsets: a master, a slave, members that come and go.

Brokers' orders and members' consumers are the real ones; ``loop`` lets what awaits run on the virtual clock.
``links`` are the connections between them, ``broker`` and ``member`` the two ends, ``troubles`` what befalls
them, and ``rules`` what must hold.
"""
