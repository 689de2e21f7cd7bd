"""The layers of a frame, painted one over the other by compiled loops: wall, polyps, folds, instruments, bubbles.

A canvas is float32[h, w, 3], the light on the sensor, 1 for white. Textures hold colours as they look; their square is
the light. A canvas shows a part of the frame: pixel (i, j) is at x = left + (j + 0.5) * step_x and
y = top + (i + 0.5) * step_y. Positions and lengths are in heights of the frame, from its middle, so that a part and the
whole frame show the same.

`view` is float32[4]: left, top, step_x, step_y.
`light` is float32[6]: exposure, how fast it falls off, how it changes along x and y, position x and y of the lamp.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.compiled import compiled
from polypcount.simulate.noise import Float32

Canvas = NDArray[np.float32]

drawn = compiled(fastmath=True, boundscheck=False)


# A plain number in a compiled loop has 64 bits and makes the calculation 64-bit, at twice the time.
_1, _LEAST, _DIFFUSE, _STEEP = np.float32(1.0), np.float32(0.15), np.float32(0.9), np.float32(1.6)
_MIRROR, _GLEAM = np.float32(0.9), np.float32(50.0)


@drawn
def _lit(x: float, y: float, slope_x: float, slope_y: float, light: Float32) -> Any:
    """Diffuse and mirrored light at a point of a surface with a slope; the lamp is beside the lens."""
    lean = _1 + light[2] * x + light[3] * y
    diffuse = light[0] * lean / (_1 + light[1] * (x * x + y * y))
    # A surface shines where its slope turns the lamp's light into the lens.
    from_x, from_y = x - light[4], y - light[5]
    away_x, away_y = slope_x - from_x * _MIRROR, slope_y - from_y * _MIRROR
    shine = max(_1 - _GLEAM * (away_x * away_x + away_y * away_y), np.float32(0.0))
    # It is darker where it is steep, most of all where it faces away from the lamp.
    diffuse *= max(_LEAST, _1 + _DIFFUSE * (slope_x * from_x + slope_y * from_y))
    return diffuse / np.sqrt(_1 + _STEEP * (slope_x * slope_x + slope_y * slope_y)), shine * shine * light[0]


@drawn
def paint_wall(canvas: Canvas, view: Float32, wall: NDArray[np.uint8], place: Float32, light: Float32) -> None:
    """Paint the inside of the colon.

    Args:
        canvas: To paint on.
        view: See above.
        wall: uint8[s, s, 5], see `draw_wall`.
        place: float32[8]: position of the lumen (x, y), turn, forward, copies of the wall around, length of wall for
            each e-fold of the distance from the lumen, how triangular it is, how flat.
        light: See above.
    """
    side = wall.shape[0]
    mask = side - 1
    for i in range(canvas.shape[0]):
        y = view[1] + (np.float32(i) + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (np.float32(j) + np.float32(0.5)) * view[2]
            dx, dy = x - place[0], y - place[1]
            square = dx * dx + dy * dy + np.float32(1e-4)
            # Three bands of muscle pull the rings into a rounded triangle.
            three = dx * (dx * dx - np.float32(3) * dy * dy) / (square * np.sqrt(square))
            square *= _1 + np.float32(0.22) * three * place[6] + np.float32(0.2) * dx * dy / square * place[7]
            around = (np.float32(0.15915494) * np.arctan2(dy, dx) * place[4] + place[2]) * np.float32(side)
            along = (place[5] * np.float32(0.5) * np.log(square) + place[3]) * np.float32(side)
            u, v = np.floor(around), np.floor(along)
            a, b = around - u, along - v
            u0, v0 = int(u) & mask, int(v) & mask
            u1, v1 = (u0 + 1) & mask, (v0 + 1) & mask
            w00, w01, w10, w11 = (_1 - a) * (_1 - b), a * (_1 - b), (_1 - a) * b, a * b
            around_slope = w00 * wall[v0, u0, 3] + w01 * wall[v0, u1, 3] + w10 * wall[v1, u0, 3] + w11 * wall[v1, u1, 3]
            along_slope = w00 * wall[v0, u0, 4] + w01 * wall[v0, u1, 4] + w10 * wall[v1, u0, 4] + w11 * wall[v1, u1, 4]
            around_slope = (around_slope - np.float32(128)) * np.float32(0.02)
            along_slope = (along_slope - np.float32(128)) * np.float32(0.02)
            away = np.sqrt(square)
            radial_x, radial_y = dx / away, dy / away
            slope_x = along_slope * radial_x - around_slope * radial_y
            slope_y = along_slope * radial_y + around_slope * radial_x
            diffuse, shine = _lit(x, y, slope_x * np.float32(0.5), slope_y * np.float32(0.5), light)
            # Far down the lumen it is dark; the side of a fold that faces the lens is brighter.
            deep = square / (square + np.float32(0.09))
            diffuse *= deep * (_1 - np.float32(0.35) * max(np.float32(-1.0), min(np.float32(1.0), along_slope)))
            shine *= deep * np.float32(0.5)
            for c in range(3):
                value = w00 * wall[v0, u0, c] + w01 * wall[v0, u1, c] + w10 * wall[v1, u0, c] + w11 * wall[v1, u1, c]
                canvas[i, j, c] = value * value * np.float32(1.5378701e-05) * diffuse + shine  # 255 ** -2


@drawn
def paint_patch(
    canvas: Canvas,
    view: Float32,
    patch: NDArray[np.uint8],
    inverse: Float32,
    light: Float32,
    dirt: Float32,
    looks: Float32,
) -> None:
    """Paint a polyp with its surroundings.

    Args:
        canvas: To paint on.
        view: See above.
        patch: One level of a `Patch`.
        inverse: float32[3, 3], from a position in the frame to one in the patch (-0.5 to 0.5).
        light: See above.
        dirt: float32[s, s], noise.
        looks: float32[10]: gains of red, green and blue; threshold of the dirt; its position x and y; turn of the
            slopes (cosine, sine); blood, and blue of an injection, both 0 to 1.
    """
    side, dirt_mask = patch.shape[0], dirt.shape[0] - 1
    for i in range(canvas.shape[0]):
        y = view[1] + (np.float32(i) + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (np.float32(j) + np.float32(0.5)) * view[2]
            depth = inverse[2, 0] * x + inverse[2, 1] * y + inverse[2, 2]
            if depth <= 1e-3:
                continue
            px = (inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]) / depth
            py = (inverse[1, 0] * x + inverse[1, 1] * y + inverse[1, 2]) / depth
            if not (-0.5 < px < 0.5 and -0.5 < py < 0.5):
                continue
            across, down = (px + 0.5) * side - 0.5, (py + 0.5) * side - 0.5
            u0, v0 = int(max(across, 0.0)), int(max(down, 0.0))
            a, b = min(max(across - u0, 0.0), 1.0), min(max(down - v0, 0.0), 1.0)
            u1, v1 = min(u0 + 1, side - 1), min(v0 + 1, side - 1)
            w00, w01, w10, w11 = (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b
            opacity = (
                w00 * patch[v0, u0, 3] + w01 * patch[v0, u1, 3] + w10 * patch[v1, u0, 3] + w11 * patch[v1, u1, 3]
            ) / 255
            if opacity <= 0:
                continue
            flat_x = (
                w00 * patch[v0, u0, 4] + w01 * patch[v0, u1, 4] + w10 * patch[v1, u0, 4] + w11 * patch[v1, u1, 4] - 128
            ) / 100
            flat_y = (
                w00 * patch[v0, u0, 5] + w01 * patch[v0, u1, 5] + w10 * patch[v1, u0, 5] + w11 * patch[v1, u1, 5] - 128
            ) / 100
            on_polyp = (
                w00 * patch[v0, u0, 6] + w01 * patch[v0, u1, 6] + w10 * patch[v1, u0, 6] + w11 * patch[v1, u1, 6]
            ) / 255
            slope_x = looks[6] * flat_x - looks[7] * flat_y
            slope_y = looks[7] * flat_x + looks[6] * flat_y
            # Stool and mucus lie on the surface; the threshold falls as it gets dirtier.
            spot_x, spot_y = int((px + looks[4]) * 300), int((py + looks[5]) * 300)
            soil = dirt[spot_y & dirt_mask, spot_x & dirt_mask] - looks[3]
            cover = min(max(soil * 2.5, 0.0), 1.0)
            if cover > 0:
                right = dirt[spot_y & dirt_mask, (spot_x + 3) & dirt_mask] - looks[3]
                below = dirt[(spot_y + 3) & dirt_mask, spot_x & dirt_mask] - looks[3]
                slope_x, slope_y = slope_x + 1.2 * cover * (soil - right), slope_y + 1.2 * cover * (soil - below)
            diffuse, shine = _lit(x, y, slope_x, slope_y, light)
            wound = (
                looks[8]
                * on_polyp
                * min(max(0.4 + 0.5 * dirt[(spot_x // 2) & dirt_mask, spot_y // 2 & dirt_mask], 0.0), 1.0)
            )
            for c in range(3):
                value = (
                    w00 * patch[v0, u0, c] + w01 * patch[v0, u1, c] + w10 * patch[v1, u0, c] + w11 * patch[v1, u1, c]
                ) / 255
                value = value * value * looks[c]
                value += wound * ((0.22 if c == 0 else 0.01) - value)
                blue = 0.25 if c == 0 else (0.6 if c == 1 else 0.95)
                value += looks[9] * (1 - 0.6 * on_polyp) * (value * blue - value)
                stool = 0.46 if c == 0 else (0.27 if c == 1 else 0.04)
                value += cover * 0.9 * (stool * (0.85 + 0.25 * soil) - value)
                canvas[i, j, c] += opacity * (value * diffuse + shine * 0.9 - canvas[i, j, c])


@drawn
def paint_fold(
    canvas: Canvas, view: Float32, wall: NDArray[np.uint8], noise: Float32, fold: Float32, light: Float32
) -> None:
    """Paint a fold of the wall, nearer than what it hides.

    Args:
        canvas: To paint on.
        view: See above.
        wall: uint8[s, s, 5], see `draw_wall`.
        noise: float32[s, s], for the waves of its edge.
        fold: float32[8]: direction from its edge to its inside (cosine, sine), distance of its edge from the middle
            along that, waviness, position in the noise, softness of its edge, brightness, position on the wall.
        light: See above.
    """
    mask, wall_mask = noise.shape[0] - 1, wall.shape[0] - 1
    for i in range(canvas.shape[0]):
        y = view[1] + (i + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (j + np.float32(0.5)) * view[2]
            inwards = x * fold[0] + y * fold[1] - fold[2]
            if inwards < -0.5:
                continue
            side = y * fold[0] - x * fold[1]
            # An edge is bent as a whole and wavy in detail.
            spot = (side + fold[4]) * 24
            left = int(np.floor(spot))
            part = spot - left
            bend = noise[left & mask, 7] * (1 - part) + noise[(left + 1) & mask, 7] * part
            inside = inwards + fold[3] * bend - 0.35 * side * side
            if inside <= -0.18:
                continue
            cover = min(max(inside / fold[5] + 0.5, 0.0), 1.0)
            # What lies just behind it is in its shadow.
            shadow = 1.0 if inside >= 0 else 1.0 - 0.45 * (1 + inside / 0.18) ** 2
            depth = max(inside, 0.0)
            crest = depth / (depth + 0.05)
            tone = fold[6] * light[0] * (0.62 + 0.55 * crest) / (1.0 + 0.8 * depth + 0.4 * light[1] * (x * x + y * y))
            u = int((side * 0.55 + fold[7]) * 512) & wall_mask
            v = int((inwards * 0.55 + fold[7] * 0.7) * 512) & wall_mask
            for c in range(3):
                value = (wall[v, u, c] / 255) ** 2 * tone
                behind = canvas[i, j, c] * shadow
                canvas[i, j, c] = behind + cover * (value - behind)


@drawn
def paint_tool(canvas: Canvas, view: Float32, tool: Float32, light: Float32) -> None:
    """Paint a catheter, from beyond the edge of the frame to its tip, and the loop of its snare.

    Args:
        canvas: To paint on.
        view: See above.
        tool: float32[11]: tip (x, y), direction from the tip to the edge of the frame (cosine, sine), half width, red,
            green, blue, distance between its rings (0 for none), radius of the loop (0 for none), its flatness.
        light: See above.
    """
    for i in range(canvas.shape[0]):
        y = view[1] + (i + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (j + np.float32(0.5)) * view[2]
            dx, dy = x - tool[0], y - tool[1]
            along, aside = dx * tool[2] + dy * tool[3], dy * tool[2] - dx * tool[3]
            # It is wider where it is nearer to the lens.
            half = tool[4] * (1 + 0.5 * max(along, 0.0))
            end = half if along >= 0 else np.sqrt(max(half * half - along * along, 0.0))
            edge = (end - abs(aside)) / (0.06 * half + view[2])
            if along > -half and edge > 0:
                across = aside / half
                round_ = np.sqrt(max(1 - across * across, 0.0))
                tone = light[0] * (0.25 + 0.75 * round_)
                if tool[8] > 0 and (along / tool[8]) % 1.0 < 0.3:
                    tone *= 0.35
                gleam = max(0.0, 1 - ((across + 0.3) / 0.13) ** 2) * 0.7 * light[0]
                cover = min(edge, 1.0)
                for c in range(3):
                    value = tool[5 + c] ** 2 * tone + gleam
                    canvas[i, j, c] += cover * (value - canvas[i, j, c])
            elif tool[9] > 0:
                lx, ly = along + tool[9], aside / tool[10]
                far = abs(np.sqrt(lx * lx + ly * ly) - tool[9])
                wire = 0.13 * tool[4] + 0.5 * view[2]
                if far < 2 * wire:
                    cover = min(max((2 * wire - far) / wire, 0.0), 1.0)
                    for c in range(3):
                        value = light[0] * (0.55 + 0.3 * (far < 0.5 * wire))
                        canvas[i, j, c] += cover * (value - canvas[i, j, c])


@drawn
def paint_bubbles(canvas: Canvas, view: Float32, bubbles: Float32, light: Float32) -> None:
    """Paint bubbles, float32[n, 4]: x, y, radius, how milky."""
    height, width = canvas.shape[0], canvas.shape[1]
    for k in range(len(bubbles)):
        cx, cy, radius, milky = bubbles[k]
        top, bottom = int((cy - radius - view[1]) / view[3]), int((cy + radius - view[1]) / view[3]) + 1
        left, right = int((cx - radius - view[0]) / view[2]), int((cx + radius - view[0]) / view[2]) + 1
        for i in range(max(top, 0), min(bottom, height)):
            y = view[1] + (i + np.float32(0.5)) * view[3]
            for j in range(max(left, 0), min(right, width)):
                x = view[0] + (j + np.float32(0.5)) * view[2]
                dx, dy = (x - cx) / radius, (y - cy) / radius
                far = dx * dx + dy * dy
                if far >= 1:
                    continue
                rim = far * far * far
                glint = max(0.0, 1 - ((dx + 0.35) ** 2 + (dy + 0.4) ** 2) / 0.03)
                under = max(0.0, 1 - ((dx - 0.45) ** 2 + (dy - 0.5) ** 2) / 0.06) * 0.25
                for c in range(3):
                    value = canvas[i, j, c]
                    value += milky * (light[0] * (0.72 if c == 2 else 0.85) - value)
                    value *= 1 - 0.45 * rim * (1 - rim) * 4 * 0.6
                    value += light[0] * (0.30 * rim * rim + 0.9 * glint + under)
                    canvas[i, j, c] = value
