"""Tests of leadline.stores."""
