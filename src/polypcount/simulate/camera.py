"""From light to an image, as the camera makes it: blur, colour, noise, and black corners."""

import numpy as np
from numpy.typing import NDArray

from polypcount.simulate.layers import Canvas, drawn
from polypcount.simulate.noise import Float32


def blur(canvas: Canvas, sigma: float, streak_x: float, streak_y: float) -> Canvas:
    """Blur by a Gaussian of `sigma` pixels, then by motion along a streak in pixels."""
    if sigma > 0.3:
        reach = int(np.ceil(2.5 * sigma))
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2).astype(np.float32)
        canvas = _blurred(canvas, weights / weights.sum())
    taps = int(min(np.hypot(streak_x, streak_y), 24)) + 1
    if taps > 1:
        canvas = _smeared(canvas, streak_x, streak_y, taps)
    return canvas


@drawn
def _blurred(canvas: Canvas, weights: Float32) -> Canvas:
    height, width, _ = canvas.shape
    reach = len(weights) // 2
    rows = np.empty_like(canvas)
    for i in range(height):
        for j in range(width):
            r, g, b = np.float32(0), np.float32(0), np.float32(0)
            for k in range(-reach, reach + 1):
                at = min(max(j + k, 0), width - 1)
                weight = weights[k + reach]
                r += weight * canvas[i, at, 0]
                g += weight * canvas[i, at, 1]
                b += weight * canvas[i, at, 2]
            rows[i, j, 0], rows[i, j, 1], rows[i, j, 2] = r, g, b
    whole = np.zeros_like(canvas)
    for i in range(height):
        for k in range(-reach, reach + 1):
            at = min(max(i + k, 0), height - 1)
            weight = weights[k + reach]
            for j in range(width):
                for c in range(3):
                    whole[i, j, c] += weight * rows[at, j, c]
    return whole


@drawn
def _smeared(canvas: Canvas, streak_x: float, streak_y: float, taps: int) -> Canvas:
    height, width, _ = canvas.shape
    smeared = np.zeros_like(canvas)
    share = np.float32(1) / taps
    for tap in range(taps):
        part = (tap + 0.5) / taps - 0.5
        dx, dy = int(np.round(part * streak_x)), int(np.round(part * streak_y))
        for i in range(height):
            at = min(max(i + dy, 0), height - 1)
            for j in range(width):
                beside = min(max(j + dx, 0), width - 1)
                for c in range(3):
                    smeared[i, j, c] += share * canvas[at, beside, c]
    return smeared


@drawn
def develop(canvas: Canvas, view: Float32, camera: Float32, seed: int) -> NDArray[np.uint8]:
    """From light to an image, uint8[h, w, 3].

    Args:
        canvas: The light.
        view: See `layers.py`.
        camera: float32[9]: gains of red, green and blue; share of narrow-band imaging; noise in levels; half width,
            half height and corner of the shown octagon, in heights of the frame; contrast.
        seed: Seed of the noise.
    """
    height, width, _ = canvas.shape
    picture = np.empty((height, width, 3), np.uint8)
    state = np.uint64(seed * 747796405 + 2891336453) & np.uint64(0xFFFFFFFF)
    narrow = camera[3]
    for i in range(height):
        y = abs(view[1] + (i + np.float32(0.5)) * view[3])
        for j in range(width):
            x = abs(view[0] + (j + np.float32(0.5)) * view[2])
            # Negative inside; the border is as wide as a pixel.
            beyond = max(max(x - camera[5], y - camera[6]), (x / camera[5] + y / camera[6] - camera[7]) * 0.5)
            shown = min(max(0.5 - beyond / view[3], 0.0), 1.0)
            r, g, b = canvas[i, j, 0], canvas[i, j, 1], canvas[i, j, 2]
            if narrow > 0:
                r, g, b = (
                    r + narrow * (0.12 * r + 0.80 * g - r),
                    g + narrow * (0.25 * g + 0.85 * b - g),
                    b + narrow * (0.05 * g + 0.95 * b - b),
                )
            r, g, b = r * camera[0], g * camera[1], b * camera[2]
            # Most noise is common to all colours, as after the camera's own smoothing.
            state = (state * np.uint64(1664525) + np.uint64(1013904223)) & np.uint64(0xFFFFFFFF)
            common = (np.float32(state >> np.uint64(8)) * np.float32(1.1920929e-7) - 1) * camera[4]
            for c in range(3):
                value = r if c == 0 else (g if c == 1 else b)
                value = max(value, np.float32(0))
                # Bright parts fade to white gently.
                value = value * (1 + value * np.float32(0.16)) / (1 + value * np.float32(0.55))
                value = np.sqrt(value * np.float32(1.25)) * camera[8] + (1 - camera[8]) * np.float32(0.45)
                state = (state * np.uint64(1664525) + np.uint64(1013904223)) & np.uint64(0xFFFFFFFF)
                own = (np.float32(state >> np.uint64(8)) * np.float32(1.1920929e-7) - 1) * camera[4] * np.float32(0.4)
                level = value * 255 * shown + (common + own) * (0.25 + 0.75 * shown) + 4 * (1 - shown)
                picture[i, j, c] = np.uint8(min(max(level + np.float32(0.5), np.float32(0)), np.float32(255)))
    return picture
