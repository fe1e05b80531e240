"""What became of messages, told to RocketMQ's topic of traces: ``tracer`` collects and sends.

Pure: ``trace_format`` (the text), ``trace_queue`` (what waits, bounded).
"""
