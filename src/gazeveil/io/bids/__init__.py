"""BIDS 1.11 eye tracking: read and write."""
