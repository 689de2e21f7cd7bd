"""Procedures with known polyps, for tests, benchmarks and for trying the program without patient data.

The modules that draw are loaded when they are first used: they need a compiler, and timelines do not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polypcount.simulate.appearance import Difficulty
from polypcount.simulate.detector import DetectorRates, as_detected
from polypcount.simulate.settings import TimelineSettings
from polypcount.simulate.timeline import simulate_timelines

if TYPE_CHECKING:
    from polypcount.simulate.rendering import render
    from polypcount.simulate.scenes import simulate_scenes
    from polypcount.simulate.stills import list_stills

_HOME_OF = {"list_stills": "stills", "render": "rendering", "simulate_scenes": "scenes"}

__all__ = [
    "DetectorRates",
    "Difficulty",
    "TimelineSettings",
    "as_detected",
    "list_stills",
    "render",
    "simulate_scenes",
    "simulate_timelines",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'polypcount.simulate' has no attribute {name!r}")
    return getattr(import_module(f"polypcount.simulate.{_HOME_OF[name]}"), name)
