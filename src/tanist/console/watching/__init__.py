"""Looking at the cluster once for all viewers: ``snapshot`` is what was seen, ``history`` what was before."""
