"""The parent process of a broker whose role a controller decides.

``watchdog`` decides when a silent broker is taken for hung, and ``pulse`` is the broker's side of it.
``death_report`` tells the controllers, ``forked`` starts the broker's process, ``supervising`` watches it.
Nothing here imports the broker: the parent stays small.
"""

from tanist.supervisor.pulse import pulse
from tanist.supervisor.settings import SupervisorSettings
from tanist.supervisor.supervising import supervise

__all__ = ["SupervisorSettings", "pulse", "supervise"]
