"""`marginals`: synthetic feature vectors from histograms."""
