"""The console: pages and REST over what ``tanist.admin`` can ask and do.

``access`` (users, sessions, the limit on logins, the audit log) and ``views`` (what a page shows) are
pure but for one file; ``watching`` asks the cluster, once for all viewers; ``web`` is the only folder
that knows the web framework, and ``web.serving`` the door.
"""
