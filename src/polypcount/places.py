"""Where polypcount keeps files of its own: one folder for caches, one for the user's models."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """What can be computed again. `POLYPCOUNT_CACHE` moves it."""
    return _folder("POLYPCOUNT_CACHE", "user_cache_path")


def model_folder() -> Path:
    """Encoders the user has trained or been given. `POLYPCOUNT_MODELS` moves it."""
    return _folder("POLYPCOUNT_MODELS", "user_data_path")


def _folder(variable: str, standard_place: str) -> Path:
    if moved := os.environ.get(variable):
        return Path(moved).expanduser()
    import platformdirs

    place: Path = getattr(platformdirs, standard_place)("polypcount", appauthor=False)
    return place
