"""Micro-guests under QEMU: what they are made of, how they are described, how they are started and talked to."""
