"""What every process that serves has in its config file: where it is measured, and how its log looks."""

from enum import StrEnum
from typing import Annotated

import msgspec


class ExporterType(StrEnum):
    """Whether metrics are served. RocketMQ has ``OTLP_GRPC`` and ``LOG`` besides."""

    DISABLE = "DISABLE"
    PROM = "PROM"


class LogFormat(StrEnum):
    """What a line of the log is."""

    TEXT = "text"
    JSON = "json"


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of a process that have nothing to do with what it serves."""

    metrics_exporter_type: ExporterType = ExporterType.DISABLE
    """``PROM`` serves metrics to Prometheus, at ``/metrics``."""
    metrics_prom_exporter_host: str = "127.0.0.1"
    """Where they are served: whoever reaches it learns the names of topics and groups."""
    metrics_prom_exporter_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 5557
    """Each process of a machine needs another one; 0 for one that the system chooses."""
    log_format: LogFormat = LogFormat.TEXT
    """``json`` makes every line of the log an object. The option ``--log-format`` goes before it."""

    @property
    def is_measured(self) -> bool:
        return self.metrics_exporter_type is ExporterType.PROM
