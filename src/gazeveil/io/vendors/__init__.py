"""Files of trackers' makers."""
