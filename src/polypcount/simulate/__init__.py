"""Procedures with known polyps, for tests, benchmarks and for trying the program without patient data."""

from polypcount.simulate.timeline import TimelineSettings, simulate_timelines

__all__ = ["TimelineSettings", "simulate_timelines"]
