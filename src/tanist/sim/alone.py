"""A history is nobody else's: what takes chances of its own takes the seed's, and no log is written."""

import logging
import random
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def alone(seed: int) -> Generator[None]:
    """While the block lasts."""
    state, level = random.getstate(), logging.root.manager.disable
    random.seed(seed)
    logging.disable()
    try:
        yield
    finally:
        logging.disable(level)
        random.setstate(state)
