"""Robot: what users call."""
