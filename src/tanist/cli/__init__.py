"""The command line: ``tanist``. Nothing below this layer knows click or rich."""
