"""Reductions: sums, extrema, statistics, histograms, cumulative functions."""
