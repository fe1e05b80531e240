"""The broker: it takes messages into the log and gives them to consumers.

``Broker`` owns ports and tasks. Tables and machines beside it are pure: topics, groups, offsets,
clients, queue locks, parked pulls, delays. ``handlers`` has one module a family of requests.
"""

from tanist.broker.broker import Broker
from tanist.broker.settings import BrokerSettings

__all__ = ["Broker", "BrokerSettings"]
