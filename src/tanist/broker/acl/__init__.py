"""Access control: RocketMQ's ``aclEnable`` with its plain_acl.yml.

``plain_acl`` reads the file, ``addresses`` and ``needs`` say what its words mean, ``rules`` decides. They are
pure. ``files`` finds the files and watches them; ``guard`` stands before the handlers.
"""

from tanist.broker.acl.files import AclFiles
from tanist.broker.acl.guard import AccessGuard

__all__ = ["AccessGuard", "AclFiles"]
