"""Plain tables: CSV, TSV and the like, with columns of any names."""
