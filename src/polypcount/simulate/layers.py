"""The layers of a frame, painted one over the other by compiled loops: wall, polyps, folds, liquid, tools, bubbles.

A canvas is float32[3, h, w], the light on the sensor, 1 for white: a plane for each of red, green and blue. Textures
hold colours as they look; their square is the light. A canvas shows a part of the frame: pixel (i, j) is at
x = left + (j + 0.5) * step_x and y = top + (i + 0.5) * step_y. Positions and lengths are in heights of the frame, from
its middle, so that a part and the whole frame show the same.

A texture is uint64[s, s]: eight bytes of each point, see `packed`.
`view` is float32[4]: left, top, step_x, step_y.
`light` is float32[6]: exposure, how fast it falls off, how it changes along x and y, position x and y of the lamp.

These loops take most of the time of a simulation. So a row is done in steps that the compiler turns into vector
instructions, and all eight bytes of a texture are interpolated at once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.compiled import compiled
from polypcount.simulate.noise import Float32

Canvas = NDArray[np.float32]
Texture = NDArray[np.uint64]

# Only what changes no result. Reordered sums or fused products would depend on which loop the compiler's code takes,
# the vector one or the one for the rest of a row, and so the same seed would not give the same pixels.
_EXACT = {"nnan", "ninf", "nsz"}
drawn = compiled(fastmath=_EXACT, boundscheck=False, error_model="numpy")

# A plain number in a compiled loop has 64 bits and makes the calculation 64-bit, at twice the time.
_f = np.float32
_0, _1, _HALF = _f(0), _f(1), _f(0.5)
_LEAST, _DIFFUSE, _STEEP, _MIRROR, _GLEAM = _f(0.15), _f(0.9), _f(1.6), _f(0.9), _f(50)
_A3, _A2, _A1, _QUARTER_TURN, _HALF_TURN = _f(-0.0464964749), _f(0.15931422), _f(-0.327622764), _f(np.pi / 2), _f(np.pi)
_DEPTH, _BRIGHT = _f(0.16), _f(1.2)  # how fast it gets dark down the lumen; light on what is near
_LANES = np.uint64(0x00FF00FF00FF00FF)
_BYTE, _LANE = np.uint64(8), np.uint64(0xFFFF)
_UNIT = _f(1 / 256)


def packed(planes: NDArray[np.uint8]) -> Texture:
    """A texture from up to eight planes, uint8[s, s, k]."""
    padded = np.zeros((*planes.shape[:2], 8), np.uint8)
    padded[..., : planes.shape[2]] = planes
    return padded.view(np.uint64)[..., 0]


@drawn
def _between(p00: Any, p01: Any, p10: Any, p11: Any, a: Any, b: Any) -> Any:
    """Four points of a texture, weighted by 16ths a and b: planes 0, 2, 4, 6 and planes 1, 3, 5, 7, 16 bits each.

    The weights add up to 256, so that a sum of bytes fits into 16 bits, and no plane runs over into the next.
    """
    w11 = np.uint64(a * b)
    w01, w10 = np.uint64(a * 16) - w11, np.uint64(b * 16) - w11
    w00 = np.uint64(256) - w01 - w10 - w11
    even = (p00 & _LANES) * w00 + (p01 & _LANES) * w01 + (p10 & _LANES) * w10 + (p11 & _LANES) * w11
    odd = ((p00 >> _BYTE) & _LANES) * w00 + ((p01 >> _BYTE) & _LANES) * w01
    odd += ((p10 >> _BYTE) & _LANES) * w10 + ((p11 >> _BYTE) & _LANES) * w11
    return even, odd


@drawn
def _plane(lanes: Any, number: int) -> Any:
    """One of four planes of `_between`, 0 to 255."""
    return _f(np.int32((lanes >> np.uint64(16 * number)) & _LANE)) * _UNIT


@drawn
def _lit(x: float, y: float, slope_x: float, slope_y: float, light: Float32) -> Any:
    """Diffuse and mirrored light at a point of a surface with a slope; the lamp is beside the lens."""
    lean = max(_1 + light[2] * x + light[3] * y, _LEAST)
    diffuse = light[0] * lean / (_1 + light[1] * (x * x + y * y))
    # A surface shines where its slope turns the lamp's light into the lens.
    from_x, from_y = x - light[4], y - light[5]
    away_x, away_y = slope_x - from_x * _MIRROR, slope_y - from_y * _MIRROR
    shine = max(_1 - _GLEAM * (away_x * away_x + away_y * away_y), _0)
    # It is darker where it is steep, most of all where it faces away from the lamp.
    diffuse *= max(_LEAST, _1 + _DIFFUSE * (slope_x * from_x + slope_y * from_y))
    return diffuse / np.sqrt(_1 + _STEEP * (slope_x * slope_x + slope_y * slope_y)), shine * shine * light[0]


@drawn
def paint_wall(canvas: Canvas, view: Float32, wall: Texture, place: Float32, light: Float32) -> None:
    """Paint the inside of the colon.

    Args:
        canvas: To paint on.
        view: See above.
        wall: See `draw_wall`.
        place: float32[8]: position of the lumen (x, y), turn, forward, copies of the wall around, length of wall for
            each e-fold of the distance from the lumen, how triangular it is, how flat.
        light: See above.
    """
    height, width = canvas.shape[1], canvas.shape[2]
    side = wall.shape[0]
    mask = np.int32(side - 1)
    texels = _f(16 * side)  # around and along are in 16ths of a point of the texture
    per_turn, per_fold = place[4] * _f(0.15915494) * texels, place[5] * _f(0.5 * 0.6931472) * texels
    turned, forward = place[2] * texels, place[3] * texels
    squares, angles = np.empty(width, np.float32), np.empty(width, np.float32)
    bits = squares.view(np.int32)
    u, v = np.empty(width, np.int32), np.empty(width, np.int32)
    texture = np.empty((5, width), np.float32)
    for i in range(height):
        y = view[1] + (_f(i) + _HALF) * view[3]
        dy = y - place[1]
        for j in range(width):
            dx = view[0] + (_f(j) + _HALF) * view[2] - place[0]
            square = dx * dx + dy * dy + _f(1e-4)
            # Three bands of muscle pull the rings into a rounded triangle.
            three = dx * (dx * dx - _f(3) * dy * dy) / (square * np.sqrt(square))
            squares[j] = square * (_1 + _f(0.22) * three * place[6]) + _f(0.2) * dx * dy * place[7]
            wide, high = abs(dx), abs(dy)
            ratio = min(wide, high) / max(max(wide, high), _f(1e-9))
            part = ratio * ratio
            angle = ((_A3 * part + _A2) * part + _A1) * part * ratio + ratio
            angle = _QUARTER_TURN - angle if high > wide else angle
            angle = _HALF_TURN - angle if dx < _0 else angle
            angles[j] = -angle if dy < _0 else angle
        for j in range(width):
            # The logarithm: the exponent of the number, and a polynomial of its mantissa.
            exponent = ((bits[j] >> 23) & 255) - 127
            m = _f(bits[j] & 0x7FFFFF) * _f(1 / (1 << 23))
            log2 = _f(exponent) + m * (
                _f(1.4416) + m * (_f(-0.7096) + m * (_f(0.4170) + m * (_f(-0.1911) + m * _f(0.0421))))
            )
            u[j] = np.int32(np.floor(angles[j] * per_turn + turned))
            v[j] = np.int32(np.floor(log2 * per_fold + forward))
        for j in range(width):
            u0, v0 = (u[j] >> 4) & mask, (v[j] >> 4) & mask
            u1, v1 = (u0 + 1) & mask, (v0 + 1) & mask
            even, odd = _between(wall[v0, u0], wall[v0, u1], wall[v1, u0], wall[v1, u1], u[j] & 15, v[j] & 15)
            texture[0, j], texture[1, j], texture[2, j] = _plane(even, 0), _plane(odd, 0), _plane(even, 1)
            texture[3, j], texture[4, j] = _plane(odd, 1), _plane(even, 2)
        for j in range(width):
            x = view[0] + (_f(j) + _HALF) * view[2]
            dx, square = x - place[0], squares[j]
            around_slope = (texture[3, j] - _f(128)) * _f(0.02)
            along_slope = (texture[4, j] - _f(128)) * _f(0.02)
            away = _HALF / np.sqrt(square)
            slope_x = (along_slope * dx - around_slope * dy) * away
            slope_y = (along_slope * dy + around_slope * dx) * away
            diffuse, shine = _lit(x, y, slope_x, slope_y, light)
            # Far down the lumen it is dark; the side of a fold that faces the lens is brighter.
            deep = square / (square + _DEPTH)
            diffuse *= _BRIGHT * deep * (_1 - _f(0.35) * max(-_1, min(_1, along_slope)))
            shine *= deep * _HALF
            for c in range(3):
                canvas[c, i, j] = texture[c, j] * texture[c, j] * _f(1.5378701e-05) * diffuse + shine  # 255 ** -2


@drawn
def paint_patch(
    canvas: Canvas, view: Float32, patch: Texture, inverse: Float32, light: Float32, dirt: Float32, looks: Float32
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
    side, last, dirt_mask = patch.shape[0], patch.shape[0] - 1, dirt.shape[0] - 1
    texels = _f(16 * side)
    for i in range(canvas.shape[1]):
        y = view[1] + (_f(i) + _HALF) * view[3]
        for j in range(canvas.shape[2]):
            x = view[0] + (_f(j) + _HALF) * view[2]
            depth = inverse[2, 0] * x + inverse[2, 1] * y + inverse[2, 2]
            if depth <= _f(1e-3):
                continue
            px = (inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]) / depth
            py = (inverse[1, 0] * x + inverse[1, 1] * y + inverse[1, 2]) / depth
            if not (-_HALF < px < _HALF and -_HALF < py < _HALF):
                continue
            across = max(np.int32((px + _HALF) * texels) - np.int32(8), np.int32(0))
            down = max(np.int32((py + _HALF) * texels) - np.int32(8), np.int32(0))
            u0, v0 = min(across >> 4, last), min(down >> 4, last)
            u1, v1 = min(u0 + 1, last), min(v0 + 1, last)
            even, odd = _between(patch[v0, u0], patch[v0, u1], patch[v1, u0], patch[v1, u1], across & 15, down & 15)
            opacity = _plane(odd, 1) * _f(1 / 255)
            if opacity <= _0:
                continue
            flat_x, flat_y = (_plane(even, 2) - _f(128)) * _f(0.01), (_plane(odd, 2) - _f(128)) * _f(0.01)
            on_polyp = _plane(even, 3) * _f(1 / 255)
            slope_x = looks[6] * flat_x - looks[7] * flat_y
            slope_y = looks[7] * flat_x + looks[6] * flat_y
            # Stool and mucus lie on the surface; the threshold falls as it gets dirtier.
            spot_x, spot_y = int((px + looks[4]) * _f(300)), int((py + looks[5]) * _f(300))
            soil = dirt[spot_y & dirt_mask, spot_x & dirt_mask] - looks[3]
            cover = min(max(soil * _f(2.5), _0), _1)
            if cover > _0:
                right = dirt[spot_y & dirt_mask, (spot_x + 3) & dirt_mask] - looks[3]
                below = dirt[(spot_y + 3) & dirt_mask, spot_x & dirt_mask] - looks[3]
                slope_x += _f(1.2) * cover * (soil - right)
                slope_y += _f(1.2) * cover * (soil - below)
            diffuse, shine = _lit(x, y, slope_x, slope_y, light)
            bleeds = _0
            if looks[8] > _0:
                spread = _f(0.4) + _HALF * dirt[(spot_x // 2) & dirt_mask, (spot_y // 2) & dirt_mask]
                bleeds = looks[8] * on_polyp * min(max(spread, _0), _1)
            injected = looks[9] * (_1 - _f(0.6) * on_polyp)
            for c in range(3):
                value = _plane(odd, 0) if c == 1 else _plane(even, c // 2)
                value = value * value * _f(1.5378701e-05) * looks[c]
                value += bleeds * ((_f(0.22) if c == 0 else _f(0.01)) - value)
                value *= _1 - injected * (_1 - (_f(0.25) if c == 0 else (_f(0.6) if c == 1 else _f(0.95))))
                stool = _f(0.46) if c == 0 else (_f(0.27) if c == 1 else _f(0.04))
                value += cover * _f(0.9) * (stool * (_f(0.85) + _f(0.25) * soil) - value)
                behind = canvas[c, i, j]
                canvas[c, i, j] = behind + opacity * (value * diffuse + shine * _f(0.9) - behind)


@drawn
def _columns(start: Any, slope: Any, low: Any, high: Any, view: Float32, width: int) -> Any:
    """Columns where start + slope * x is between low and high, for a row; the first, and the one after the last."""
    if abs(slope) < _f(1e-6):
        return (0, width) if low < start < high else (0, 0)
    one, other = (low - start) / slope, (high - start) / slope
    left, right = (min(one, other) - view[0]) / view[2], (max(one, other) - view[0]) / view[2]
    return max(0, int(np.floor(max(left, _f(-1)))) - 1), min(width, int(np.ceil(min(right, _f(width)))) + 1)


@drawn
def paint_fold(canvas: Canvas, view: Float32, wall: Texture, noise: Float32, fold: Float32, light: Float32) -> None:
    """Paint a fold of the wall, nearer than what it hides. Behind its crest it runs out into the wall.

    Args:
        canvas: To paint on.
        view: See above.
        wall: See `draw_wall`.
        noise: float32[s, s], for the waves of its edge.
        fold: float32[9]: direction from its edge to its inside (cosine, sine), distance of its edge from the middle
            along that, waviness, position in the noise, softness of its edge, brightness, position on the wall,
            thickness.
        light: See above.
    """
    size, width = noise.shape[0], canvas.shape[2]
    wave_mask, wall_mask = np.int32(16 * size - 1), np.int32(wall.shape[0] - 1)
    waves = np.empty(16 * size, np.float32)  # the edge is bent as a whole and wavy in detail
    for k in range(16 * size):
        part = _f(k % 16) * _f(1 / 16)
        waves[k] = noise[k // 16, 7] * (_1 - part) + noise[(k // 16 + 1) % size, 7] * part
    reach, soft = fold[8] + _f(0.35), _1 / fold[5]
    bends, kept, added = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    spots, points, colours = np.empty(width, np.uint32), np.empty(width, np.uint32), np.empty(width, np.uint32)
    flat, wall_side = wall.ravel(), np.int32(wall.shape[0])
    for i in range(canvas.shape[1]):
        y = view[1] + (_f(i) + _HALF) * view[3]
        first, stop = _columns(y * fold[1] - fold[2], fold[0], _f(-0.5), reach + _1, view, width)
        for j in range(first, stop):
            x = view[0] + (_f(j) + _HALF) * view[2]
            inwards, side = x * fold[0] + y * fold[1] - fold[2], y * fold[0] - x * fold[1]
            spots[j] = np.int32(np.floor((side + fold[4]) * _f(24 * 16))) & wave_mask
            u = np.int32(np.floor((side * _f(0.55) + fold[7]) * _f(512))) & wall_mask
            v = np.int32(np.floor((inwards * _f(0.55) + fold[7] * _f(0.7)) * _f(512))) & wall_mask
            points[j] = v * wall_side + u
        for j in range(first, stop):
            bends[j] = waves[spots[j]]
            colours[j] = np.uint32(flat[points[j]] & np.uint64(0xFFFFFF))
        for j in range(first, stop):
            x = view[0] + (_f(j) + _HALF) * view[2]
            inwards, side = x * fold[0] + y * fold[1] - fold[2], y * fold[0] - x * fold[1]
            inside = inwards + fold[3] * bends[j] - _f(0.35) * side * side
            cover = min(max(inside * soft + _HALF, _0), _1) * min(max((reach - inside) * _f(3), _0), _1)
            # What lies just behind it is in its shadow.
            dark = max(_1 + inside * _f(1 / 0.18), _0)
            shadow = _1 if inside >= _0 else _1 - _f(0.45) * dark * dark
            depth = max(inside, _0)
            crest = depth / (depth + _f(0.05))
            tone = fold[6] * light[0] * (_f(0.62) + _f(0.55) * crest) * _f(1.5378701e-05)  # 255 ** -2
            tone /= _1 + _f(0.8) * depth + _f(0.4) * light[1] * (x * x + y * y)
            kept[j], added[j] = shadow * (_1 - cover), tone * cover
        for c in range(3):
            row, shift = canvas[c, i], np.uint32(8 * c)
            for j in range(first, stop):
                value = _f(np.int32((colours[j] >> shift) & np.uint32(255)))
                row[j] = row[j] * kept[j] + value * value * added[j]


@drawn
def paint_liquid(canvas: Canvas, view: Float32, noise: Float32, liquid: Float32, light: Float32) -> None:
    """Paint a pool of liquid that lies on one side of the view.

    Args:
        canvas: To paint on.
        view: See above.
        noise: float32[s, s], for its waves.
        liquid: float32[8]: direction in which it lies (cosine, sine), distance of its edge from the middle along that,
            position of its waves, how murky it is (0 to 1), red, green, blue.
        light: See above.
    """
    mask = noise.shape[0] - 1
    for i in range(canvas.shape[1]):
        y = view[1] + (_f(i) + _HALF) * view[3]
        first, stop = _columns(y * liquid[1] - liquid[2], liquid[0], _f(-0.15), _f(9), view, canvas.shape[2])
        for j in range(first, stop):
            x = view[0] + (_f(j) + _HALF) * view[2]
            inwards = x * liquid[0] + y * liquid[1] - liquid[2]
            side = y * liquid[0] - x * liquid[1]
            wave_x, wave_y = int((side + liquid[3]) * _f(260)), int((inwards * _f(2.5) + liquid[3]) * _f(260))
            wave = noise[wave_y & mask, wave_x & mask]
            ahead = noise[(wave_y + 4) & mask, wave_x & mask]
            spot = (side + liquid[3]) * _f(9)
            left = np.floor(spot)
            part, row = spot - left, int(left)
            part = part * part * (_f(3) - _f(2) * part)
            bend = noise[row & mask, 11] * (_1 - part) + noise[(row + 1) & mask, 11] * part
            inside = inwards + _f(0.025) * bend
            if inside <= _0:
                continue
            deep = min(inside * _f(4), _1)
            cover = liquid[4] * (_f(0.35) + _f(0.65) * deep) * min(inside * _f(60), _1)
            tone = light[0] * (_f(0.9) + _f(0.05) * wave) / (_1 + light[1] * (x * x + y * y))
            ripple = max(_HALF * (wave - ahead) - _f(0.8), _0) * _HALF * light[0]
            rim = max(_1 - abs(inside - _f(0.008)) * _f(140), _0) * _f(0.12) * light[0]
            for c in range(3):
                behind = canvas[c, i, j]
                canvas[c, i, j] = behind + cover * (liquid[5 + c] * tone - behind) + ripple + rim


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
    for i in range(canvas.shape[1]):
        y = view[1] + (_f(i) + _HALF) * view[3]
        for j in range(canvas.shape[2]):
            x = view[0] + (_f(j) + _HALF) * view[2]
            dx, dy = x - tool[0], y - tool[1]
            along, aside = dx * tool[2] + dy * tool[3], dy * tool[2] - dx * tool[3]
            # It is wider where it is nearer to the lens.
            half = tool[4] * (_1 + _HALF * max(along, _0))
            if along > -half and abs(aside) < half:
                end = half if along >= _0 else np.sqrt(max(half * half - along * along, _0))
                edge = (end - abs(aside)) / (_f(0.06) * half + view[2])
                if edge <= _0:
                    continue
                across = aside / half
                round_ = np.sqrt(max(_1 - across * across, _0))
                tone = light[0] * (_f(0.25) + _f(0.75) * round_)
                if tool[8] > _0 and (along / tool[8]) % _1 < _f(0.3):
                    tone *= _f(0.35)
                shift = (across + _f(0.3)) * _f(1 / 0.13)
                gleam = max(_0, _1 - shift * shift) * _f(0.7) * light[0]
                cover = min(edge, _1)
                for c in range(3):
                    value = tool[5 + c] * tool[5 + c] * tone + gleam
                    canvas[c, i, j] += cover * (value - canvas[c, i, j])
            elif tool[9] > _0 and along < _0:
                lx, ly = along + tool[9], aside / tool[10]
                far = abs(np.sqrt(lx * lx + ly * ly) - tool[9])
                wire = _f(0.13) * tool[4] + _HALF * view[2]
                if far < _f(2) * wire:
                    cover = min(max((_f(2) * wire - far) / wire, _0), _1)
                    value = light[0] * (_f(0.85) if far < _HALF * wire else _f(0.55))
                    for c in range(3):
                        canvas[c, i, j] += cover * (value - canvas[c, i, j])


@drawn
def paint_bubbles(canvas: Canvas, view: Float32, bubbles: Float32, light: Float32) -> None:
    """Paint bubbles, float32[n, 4]: x, y, radius, how milky."""
    height, width = canvas.shape[1], canvas.shape[2]
    for k in range(len(bubbles)):
        cx, cy, radius, milky = bubbles[k]
        top, bottom = int((cy - radius - view[1]) / view[3]), int((cy + radius - view[1]) / view[3]) + 1
        left, right = int((cx - radius - view[0]) / view[2]), int((cx + radius - view[0]) / view[2]) + 1
        for i in range(max(top, 0), min(bottom, height)):
            y = view[1] + (_f(i) + _HALF) * view[3]
            for j in range(max(left, 0), min(right, width)):
                x = view[0] + (_f(j) + _HALF) * view[2]
                dx, dy = (x - cx) / radius, (y - cy) / radius
                far = dx * dx + dy * dy
                if far >= _1:
                    continue
                rim = far * far * far
                gx, gy, ux, uy = dx + _f(0.35), dy + _f(0.4), dx - _f(0.45), dy - _HALF
                glint = max(_0, _1 - (gx * gx + gy * gy) * _f(1 / 0.03))
                under = max(_0, _1 - (ux * ux + uy * uy) * _f(1 / 0.06)) * _f(0.25)
                added = light[0] * (_f(0.30) * rim * rim + _f(0.9) * glint + under)
                kept = _1 - _f(1.08) * rim * (_1 - rim)
                for c in range(3):
                    value = canvas[c, i, j]
                    value += milky * (light[0] * (_f(0.72) if c == 2 else _f(0.85)) - value)
                    canvas[c, i, j] = value * kept + added
