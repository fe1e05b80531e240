"""What pages and REST show: pure functions from a snapshot to values, one module a page."""
