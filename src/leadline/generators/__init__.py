"""Generated captures of known content, to test what reads them."""
