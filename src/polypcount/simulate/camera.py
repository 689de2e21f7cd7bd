"""From light to an image, as the camera makes it: blur, colour, noise, and black corners."""

import numpy as np
from numpy.typing import NDArray

from polypcount.simulate.layers import Canvas, drawn
from polypcount.simulate.noise import Float32

_f = np.float32
_0, _1, _HALF = _f(0), _f(1), _f(0.5)
_SOFT = 3.0  # an image that is blurred by more pixels has no detail that half as many pixels would not show
# Noise is taken from here, at a place that changes with the frame: two rows of it are never the same in a frame.
_GRAIN = np.random.default_rng(0).integers(-128, 128, 1 << 18, dtype=np.int8)
_ROW_STEP, _PLANE_STEP = 1237, 65_537


def blur(canvas: Canvas, sigma: float, streak_x: float, streak_y: float) -> Canvas:
    """Blur by a Gaussian of `sigma` pixels, then by motion along a streak in pixels."""
    if sigma > _SOFT:
        small = blur(_halved(canvas), sigma / 2, streak_x / 2, streak_y / 2)
        return np.asarray(_doubled(small, canvas.shape[1], canvas.shape[2]))
    if sigma > 0.3:
        reach = int(np.ceil(2.5 * sigma))
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2).astype(np.float32)
        canvas = _blurred(canvas, weights / weights.sum())
    taps = int(min(np.hypot(streak_x, streak_y), 24)) + 1
    if taps > 1:
        canvas = _smeared(canvas, streak_x, streak_y, taps)
    return canvas


@drawn
def _halved(canvas: Canvas) -> Canvas:
    """Means of two by two pixels; of an odd row or column, the last is left out."""
    planes, height, width = canvas.shape[0], canvas.shape[1] // 2, canvas.shape[2] // 2
    half = np.empty((planes, height, width), np.float32)
    for c in range(planes):
        for i in range(height):
            above, below = canvas[c, 2 * i], canvas[c, 2 * i + 1]
            for j in range(width):
                half[c, i, j] = (above[2 * j] + above[2 * j + 1] + below[2 * j] + below[2 * j + 1]) * _f(0.25)
    return half


@drawn
def _doubled(canvas: Canvas, height: int, width: int) -> Canvas:
    """Twice as large, to this size, by linear interpolation."""
    planes, rows, columns = canvas.shape
    double = np.empty((planes, height, width), np.float32)
    mixed = np.empty(columns, np.float32)
    for c in range(planes):
        for i in range(height):
            near, far = min(i // 2, rows - 1), min(max(i // 2 + (1 if i % 2 else -1), 0), rows - 1)
            for j in range(columns):
                mixed[j] = _f(0.75) * canvas[c, near, j] + _f(0.25) * canvas[c, far, j]
            double[c, i, 0], double[c, i, 2 * columns - 1 :] = mixed[0], mixed[columns - 1]
            for j in range(columns - 1):
                double[c, i, 2 * j + 1] = _f(0.75) * mixed[j] + _f(0.25) * mixed[j + 1]
                double[c, i, 2 * j + 2] = _f(0.25) * mixed[j] + _f(0.75) * mixed[j + 1]
    return double


@drawn
def _blurred(canvas: Canvas, weights: Float32) -> Canvas:
    planes, height, width = canvas.shape
    reach = len(weights) // 2
    rows, whole = np.empty((height, width), np.float32), np.empty_like(canvas)
    padded = np.empty(width + 2 * reach, np.float32)
    for c in range(planes):
        for i in range(height):
            padded[:reach], padded[reach + width :] = canvas[c, i, 0], canvas[c, i, width - 1]
            padded[reach : reach + width] = canvas[c, i]
            row = rows[i]
            for j in range(width):
                row[j] = weights[0] * padded[j]
            for k in range(1, 2 * reach + 1):
                weight, part = weights[k], padded[k:]
                for j in range(width):
                    row[j] += weight * part[j]
        for i in range(height):
            row = whole[c, i]
            row[:] = _0
            for k in range(-reach, reach + 1):
                weight, part = weights[k + reach], rows[min(max(i + k, 0), height - 1)]
                for j in range(width):
                    row[j] += weight * part[j]
    return whole


@drawn
def _smeared(canvas: Canvas, streak_x: float, streak_y: float, taps: int) -> Canvas:
    planes, height, width = canvas.shape
    smeared = np.zeros_like(canvas)
    share = _f(1 / taps)
    for c in range(planes):
        for i in range(height):
            row = smeared[c, i]
            for tap in range(taps):
                part = (tap + 0.5) / taps - 0.5
                dx, dy = int(np.round(part * streak_x)), int(np.round(part * streak_y))
                source = canvas[c, min(max(i + dy, 0), height - 1)]
                first, stop = min(max(-dx, 0), width), max(min(width - dx, width), 0)
                row[:first] += share * source[0]
                row[stop:] += share * source[width - 1]
                inner, moved = row[first:stop], source[first + dx : stop + dx]
                for j in range(len(inner)):
                    inner[j] += share * moved[j]
    return smeared


def develop(canvas: Canvas, view: Float32, camera: Float32, seed: int) -> NDArray[np.uint8]:
    """From light to an image, uint8[h, w, 3].

    Args:
        canvas: The light.
        view: See `layers.py`.
        camera: float32[10]: gains of red, green and blue; share of narrow-band imaging; noise in levels; half width,
            half height and corner of the shown octagon, in heights of the frame; contrast; red-out, 0 to 1.
        seed: Seed of the noise.
    """
    return np.asarray(_developed(canvas, view, camera, _mixed_colours(camera), _GRAIN, seed * 40_503_001))


def _mixed_colours(camera: Float32) -> Float32:
    """float32[3, 4]: how much of red, green, blue and white light each colour of the image shows."""
    narrow, touch = float(camera[3]), float(camera[9])
    red_out = np.diag([1 + touch * (0.35 - 1), 1 + touch * (0.12 - 1), 1 + touch * (0.08 - 1), 1.0])
    red_out[:3, 3] = touch * np.array([0.45, 0.04, 0.02])
    band = np.array([[0.12, 0.80, 0], [0, 0.25, 0.85], [0, 0.05, 0.95]])
    mixed = (np.eye(3) * (1 - narrow) + narrow * band) @ red_out[:3]
    return (camera[:3, None] * mixed).astype(np.float32)


@drawn
def _developed(
    canvas: Canvas, view: Float32, camera: Float32, mixed: Float32, grain: NDArray[np.int8], start: int
) -> NDArray[np.uint8]:
    height, width = canvas.shape[1], canvas.shape[2]
    picture = np.empty((height, width, 3), np.uint8)
    shown, row = np.empty(width, np.float32), np.empty(width, np.uint8)
    last = len(grain) - 1 - width
    noise, contrast = camera[4] * _f(1 / 128), camera[8]
    for i in range(height):
        y = abs(view[1] + (_f(i) + _HALF) * view[3])
        for j in range(width):
            x = abs(view[0] + (_f(j) + _HALF) * view[2])
            # Negative inside; the border is as wide as a pixel.
            corner = (x / camera[5] + y / camera[6] - camera[7]) * _HALF
            beyond = max(max(x - camera[5], y - camera[6]), corner)
            shown[j] = min(max(_HALF - beyond / view[3], _0), _1)
        light_r, light_g, light_b = canvas[0, i], canvas[1, i], canvas[2, i]
        common = grain[(start + i * _ROW_STEP) % last :]
        for c in range(3):
            own = grain[(start + (c + 1) * _PLANE_STEP + i * _ROW_STEP) % last :]
            from_r, from_g, from_b, white = mixed[c, 0], mixed[c, 1], mixed[c, 2], mixed[c, 3]
            for j in range(width):
                value = max(from_r * light_r[j] + from_g * light_g[j] + from_b * light_b[j] + white, _0)
                # Bright parts fade to white gently.
                value = value * (_1 + value * _f(0.16)) / (_1 + value * _f(0.55))
                value = np.sqrt(value * _f(1.25)) * contrast + (_1 - contrast) * _f(0.45)
                # Most noise is common to all colours, as after the camera's own smoothing.
                grains = (_f(common[j]) + _f(0.4) * _f(own[j])) * noise
                level = (value * _f(255) - _f(4)) * shown[j] + grains * (_f(0.25) + _f(0.75) * shown[j]) + _f(4.5)
                row[j] = np.uint8(np.int32(min(max(level, _0), _f(255))))
            for j in range(width):
                picture[i, j, c] = row[j]
    return picture
