"""Public datasets, one small file each."""
