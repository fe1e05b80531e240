"""What can be measured of a process, for Prometheus.

``names`` has every metric, ``sampling`` makes samples of figures, ``serving`` answers whoever scrapes.
Hardly anything is counted for them: figures that are there anyway are looked up when somebody asks.
"""

from tanist.metrics.sampling import OnDemand, Sampler, together
from tanist.metrics.serving import serving_metrics

__all__ = ["OnDemand", "Sampler", "serving_metrics", "together"]
