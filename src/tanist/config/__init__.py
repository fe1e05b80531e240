"""Config files: RocketMQ's ``.properties`` as text, then as typed settings that were checked.

``properties`` reads the files as Java does. ``settings`` fills frozen structs, whose fields carry
RocketMQ's key names, from what was read, and ``describe`` prints them back. ``process`` has what all
servers share.
"""

from tanist.config.describe import describe, secret_values, to_properties
from tanist.config.process import LogFormat, ProcessSettings
from tanist.config.properties import load_properties, parse_properties
from tanist.config.rewrite import with_settings
from tanist.config.settings import HIDDEN, Secret, parse_settings, warn_unsupported

__all__ = [
    "HIDDEN",
    "LogFormat",
    "ProcessSettings",
    "Secret",
    "describe",
    "load_properties",
    "parse_properties",
    "parse_settings",
    "secret_values",
    "to_properties",
    "warn_unsupported",
    "with_settings",
]
