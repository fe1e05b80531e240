"""What was written once and what was not, what was consumed once and what was not.

``dedup`` drops the repeats of a topic that was written at least once. ``accounts`` joins what a topic holds,
what its groups consumed and the ledgers of slave consumption: what is lost, what came twice, and why.
"""
