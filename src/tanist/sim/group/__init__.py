"""A group under two controllers, through many reigns: what is acknowledged, kept, cut and shown.

``replica`` is one broker with its ``disk``, in the duty of a ``master`` or a ``slave``; ``controllers`` are
who elects, each with its ``kazoo`` at the one ``zookeeper``. What decides in them are the classes that run in
production, which ``machines`` lists. ``rules`` judges, ``troubles`` are what befalls them, ``walk`` is one
history.
"""
