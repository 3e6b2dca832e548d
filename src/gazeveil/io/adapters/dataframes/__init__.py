"""Data frames of recordings, events and tables, and back: polars, pandas, or anything of Arrow."""
