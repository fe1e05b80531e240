"""Java's order of strings, by which its peers sort names that both sides have to sort alike."""


def java_order(text: str) -> bytes:
    """A key for sorting.

    Java compares UTF-16 code units: characters outside the first plane sort before U+E000.
    """
    # A lone surrogate is a code unit like any other.
    return text.encode("utf-16-be", "surrogatepass")
