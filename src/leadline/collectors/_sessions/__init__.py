"""Sessions of databases at work: one sampler, and what each server is asked."""
