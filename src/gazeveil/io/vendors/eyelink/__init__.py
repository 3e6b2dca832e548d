"""EyeLink ASC files."""
