"""Requests that wait for a reply: ``requests`` on both sides of the wire, ``replies`` the pure half."""
