"""The broker's side of controller mode: a controller gives it an id, an epoch and a role.

``joining`` and ``role_orders`` decide, pure. ``controllers`` finds the one that leads, ``heartbeats`` keeps
the lease, ``set_reports`` tells who is in step, ``duty`` runs them all and has a ``RoleSwitch`` obey.
"""
