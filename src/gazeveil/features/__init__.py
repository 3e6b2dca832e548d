"""Features of events and of windows."""
