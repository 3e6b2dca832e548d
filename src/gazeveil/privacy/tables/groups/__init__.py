"""Groups of people who share a record."""
