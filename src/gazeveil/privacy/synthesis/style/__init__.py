"""`style`: paths near a person's own noisy readings that move as another person moves."""
