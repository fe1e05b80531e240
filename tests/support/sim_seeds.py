"""The histories that the test command tells of each world, and within which it finds planted bugs."""

GROUP = range(1000)
READING = range(200)
LATE = range(90)
"""With the troubles of late claims, and once more with those of late lives."""
RESET = range(300)
COUNTERS = range(900)
"""Of both worlds in which a reign is of counters."""

TOLD_COUNT = len(GROUP) + len(READING) + 2 * len(LATE) + len(RESET) + 2 * len(COUNTERS)
