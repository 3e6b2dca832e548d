"""WebSockets of apps, trackers and the owner's live view."""
