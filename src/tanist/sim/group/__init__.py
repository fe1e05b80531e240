"""A group under a controller, through many reigns: what is acknowledged, kept, cut and shown.

``replica`` is one broker with its ``disk``, in the duty of a ``master`` or a ``slave``; ``controller`` is who
elects. What decides in them are the classes that run in production, which ``machines`` lists. ``rules``
judges, ``troubles`` are what befalls them, ``walk`` is one history.
"""
