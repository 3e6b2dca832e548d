"""To and from other packages."""
