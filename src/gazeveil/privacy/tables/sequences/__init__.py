"""Noise on sequences of feature values: Laplace, Fourier and cosine."""
