"""Is it the disk?"""
