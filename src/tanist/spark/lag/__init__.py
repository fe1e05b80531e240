"""How far consumers are behind, and how that goes: ``tanist spark lag``.

``samples`` asks brokers at intervals where groups stand, and keeps what they said as lines of JSON.
``analysis`` makes of these lines lag, rates, skew and forecasts; ``latency`` joins them with an archive, with
Spark, to how long messages took; ``page`` draws all that.
"""
