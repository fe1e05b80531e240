"""Whether the parts in C are wanted; each of them has a twin in Python that does the same.

Spark's decoding has C of its own, which is not meant.
"""

import os

KEY = "TANIST_ENGINE"
is_wanted = os.environ.get(KEY) != "python"
