"""The default detector and its stages."""
