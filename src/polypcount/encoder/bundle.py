"""The bundled encoder: the folder `bundled` of this room.

bundled/encoder.json, bundled/model-1a2b3c4d/    an encoder folder without encoder.safetensors, see `folder.py`
bundled/operating-points.json                    how recordings are counted with it, see `counting`
"""

from importlib.resources import files
from pathlib import Path

from polypcount.encoder.folder import read_onnx, write_folder
from polypcount.encoder.manifest import FOLDER, FRAME, MANIFEST, SEQUENCE, WEIGHTS
from polypcount.errors import DataError, FileError

LARGEST_BYTES = 20_000_000
_POINTS = "operating-points.json"


def bundled_folder() -> Path:
    """Folder of the bundled encoder; `FileError` where this installation has none."""
    folder = Path(str(files("polypcount.encoder") / "bundled"))
    if not (folder / MANIFEST).exists():
        raise FileError(
            "this installation of polypcount has no bundled encoder; give the folder of a trained one, or install "
            "polypcount again"
        )
    return folder


def make_bundle(run: str | Path, out: str | Path) -> Path:
    """Write an encoder without its torch weights, of at most 20 MB; returns the folder.

    Args:
        run: An encoder folder; its files are checked against their hashes.
        out: New, or with such a bundle in it. The bundle is replaced, and its operating points are removed.
    """
    out = Path(out)
    stored = read_onnx(Path(run))
    models = {name: stored.files[name] for name in (FRAME, SEQUENCE)}
    if (size := sum(map(len, models.values()))) > LARGEST_BYTES:
        sizes = ", ".join(f"{name} {len(content) / 1e6:.1f} MB" for name, content in models.items())
        raise DataError(
            f"{run}: a bundled encoder may have {LARGEST_BYTES / 1e6:.0f} MB, found {size / 1e6:.1f} ({sizes}); "
            "train one with a smaller backbone, or fewer or narrower layers"
        )
    FOLDER.refuse_unsuitable(out)
    if any(out.glob(f"model-*/{WEIGHTS}")):
        raise FileError(f"{out} holds an encoder with its torch weights, which would be lost; choose a new folder")
    # Removed first, so that no encoder is ever beside the operating points of another.
    (out / _POINTS).unlink(missing_ok=True)
    write_folder(out, stored.manifest.model_dump(exclude={"format", "format_version", "model"}), models)
    return out
