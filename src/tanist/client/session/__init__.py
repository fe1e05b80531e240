"""What producers and consumers both have: the way to name servers and brokers.

``wire`` asks brokers, ``route_keeper`` keeps the ``routes`` that ``nameservers`` give, ``heartbeats`` tells
brokers who we are, ``tasks`` owns what goes on in the background; ``session`` is all of it together.
"""
