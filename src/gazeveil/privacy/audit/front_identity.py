"""Games against the identity of noise."""
