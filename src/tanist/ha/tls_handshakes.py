"""Who fails at TLS on the HA port. The event loop shakes hands, and tells nobody of those who can not.

It does not say whose socket it was either: what is wrong is told, and not by whom.
"""

import ssl
from collections.abc import Callable


def tell_failed_handshakes(context: ssl.SSLContext, tell: Callable[[str], None]) -> None:
    """Have ``tell`` called with what is wrong whenever a handshake of this context fails."""

    class Handshake(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as error:
                tell(error.reason or str(error))
                raise

    context.sslobject_class = Handshake
