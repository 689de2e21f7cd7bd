"""Readers and writers of box formats, one file each."""
