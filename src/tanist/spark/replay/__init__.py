"""Replay: archived messages of a time range into a topic, or for one group, each once for a replay's id."""
