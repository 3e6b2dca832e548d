"""Noise on integers: random bits, exact samplers, planar and K-norm noise, local randomisers, and
OpenDP as an oracle for tests.
"""
