"""Attempts to prove a promise false: lower bounds on epsilon, exact ratios, planted mechanisms."""
