"""What a history ends with in which a rule was broken."""


class Broken(AssertionError):
    """One of the rules does not hold."""
