"""Messages that are to come later: by delay level, or at a time of their own.

``rules`` says where one waits and how it comes, ``levels`` and ``timers`` which are due, all three
pure; ``table`` keeps how far that is, ``delivered`` knows what came before a crash, and ``delivery``
carries it out.
"""
