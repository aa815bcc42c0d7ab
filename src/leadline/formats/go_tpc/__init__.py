"""What go-tpc prints."""
