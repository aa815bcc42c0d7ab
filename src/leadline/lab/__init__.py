"""Micro-guests under QEMU: what they are made of, how they are described, how they are started and talked to.

Here: images, devices, machines, channels, counters of the hypervisor.
Elsewhere: what is measured in them (app/lab).
"""
