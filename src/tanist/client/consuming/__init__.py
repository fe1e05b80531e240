"""A consumer at work: ``consumption`` opens and closes its parts.

``handling`` hands messages to ``message_iterator`` or ``handler_run`` and sees to what fails (``retrying``
says how); ``orders`` obeys brokers, ``broker_calls`` asks them; ``membership`` and ``subscriptions`` are
what the consumer is.
"""
