"""The judge of histories for those too large for one process, with the same rules.

``parts`` judges one part of a history, pure; ``job`` has Spark cut the history and adds the verdicts up.
"""
