"""Access control: RocketMQ's ``aclEnable`` with its plain_acl.yml.

``plain_acl`` reads the file, ``addresses`` and ``needs`` say what its words mean, ``rules`` decides. They are
pure. ``files`` finds the files and watches them; ``guard`` stands before the handlers; ``topic_at`` tells it
whose a message is.
"""

from tanist.broker.acl.files import AclFiles
from tanist.broker.acl.guard import AccessGuard
from tanist.broker.acl.needs import Needs
from tanist.broker.acl.topic_at import topic_at

__all__ = ["AccessGuard", "AclFiles", "Needs", "topic_at"]
