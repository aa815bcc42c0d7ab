"""Iometer's configuration files."""
