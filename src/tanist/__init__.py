"""Tanist: a highly available message broker that never lies about its replicas."""

__version__ = "0.1.0"
