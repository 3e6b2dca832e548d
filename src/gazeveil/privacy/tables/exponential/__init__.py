"""`exponential-dp`: noise on every value of a feature table."""
