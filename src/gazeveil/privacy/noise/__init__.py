"""Noise on integers: exact samplers, planar and K-norm noise, local randomisers."""
