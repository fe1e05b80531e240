"""The name server: brokers register with it, clients ask it where topics are.

``route_table`` knows who is alive and what they offer, ``kv_config`` what operators told everybody;
both are pure. ``handlers`` answer requests out of them, one family a file, and ``server`` owns the
sockets, the clock and the file.
"""

from tanist.nameserver.server import NameServer
from tanist.nameserver.settings import NameServerSettings

__all__ = ["NameServer", "NameServerSettings"]
