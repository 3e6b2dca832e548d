"""`event-synth-pd`: synthetic events that several people could have been the seed of."""
