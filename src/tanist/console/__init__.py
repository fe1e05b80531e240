"""The console: pages and REST over what ``tanist.admin`` can ask and do.

``access`` (users, sessions, the limit on logins, the audit log), ``views`` (what a page shows) and
``alarms`` are pure but for a file and the webhook; ``watching`` asks the cluster, once for all viewers; the
desks are what is asked and changed beside that; ``web`` is the only folder that knows the web framework, and
``web.serving`` the door.
"""
