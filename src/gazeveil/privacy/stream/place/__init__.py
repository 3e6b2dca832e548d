"""`gaussian-place`: one noisy place for each cell that is looked at."""
