"""From a folder of recordings to a release that a lab can upload."""
