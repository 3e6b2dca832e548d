"""From samples to what apps are told of: detected, quantised, logged, numbered, delivered."""
