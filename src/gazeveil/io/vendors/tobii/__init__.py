"""Files of Tobii's trackers."""
