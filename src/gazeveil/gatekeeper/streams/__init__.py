"""Protected sample streams that apps share, and what they cost."""
