"""The parent process of a broker whose end has to be noticed: by controllers, or by its slave.

``watchdog`` decides when a silent broker is taken for hung, and ``pulse`` is the broker's side of it.
``forked`` starts the broker's process, ``supervising`` watches it, and ``duties`` are what is due when it is
dead: ``death_report`` tells the controllers; ``presence`` ends its record in the registry, with which
``kept_registry`` keeps a session; ``stand_in`` decides how long its callers are led elsewhere, and
``standing_in``, ``stand_in_ports`` and ``pipe`` do so. Nothing here imports the broker: the parent stays
small.
"""

from tanist.supervisor.pulse import pulse
from tanist.supervisor.settings import SupervisorSettings
from tanist.supervisor.supervising import supervise

__all__ = ["SupervisorSettings", "pulse", "supervise"]
