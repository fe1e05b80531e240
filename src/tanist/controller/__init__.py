"""The controller: ids, epochs, the sync state set, leases, and who is master of each replica group.

Pure: ``group_record``, ``decisions``, ``registering``, ``election``, ``live_table``, ``leases`` and
``refusals``. Around them: ``leading`` (which controller leads), ``keeping`` (the records in the registry),
``reigns`` (timers and elections), ``handlers``, and ``server``, which owns the port.
"""

from tanist.controller.server import Controller
from tanist.controller.settings import ControllerSettings

__all__ = ["Controller", "ControllerSettings"]
