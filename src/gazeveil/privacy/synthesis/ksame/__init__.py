"""`k-same-synth`: recordings drawn from what groups of people share."""
