"""Tests of leadline.benchmarks."""
