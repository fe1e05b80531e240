"""Builds the consume queues and the key index of a store again from its log, in parallel.

``staging`` takes what dispatch would put into the indexes of one file of the log, and keeps it in files
between the steps; ``job`` divides the work: first the log by its files, then queues and index files.
"""
