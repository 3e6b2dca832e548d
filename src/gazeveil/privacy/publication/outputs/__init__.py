"""Formats that releases are written in; `csv.py`, `bids.py` and so on, one file each."""
