"""What operators see of a running broker and change in it: counters, figures, settings."""
