"""Procedures with known polyps, for tests, benchmarks and for trying the program without patient data."""

from polypcount.simulate.appearance import Looks
from polypcount.simulate.render import render
from polypcount.simulate.scenes import simulate_scenes
from polypcount.simulate.still_list import list_stills
from polypcount.simulate.timeline import TimelineSettings, simulate_timelines

__all__ = ["Looks", "TimelineSettings", "list_stills", "render", "simulate_scenes", "simulate_timelines"]
