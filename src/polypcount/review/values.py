"""A review as the page gets it: plain values for JSON."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from polypcount.report.review_file import KeptPicture
from polypcount.review.decisions import Details
from polypcount.review.effects import name_of, preview, span_of
from polypcount.review.kept import ReviewData
from polypcount.review.questions import MOST_QUESTIONS, Question
from polypcount.review.regroup import Regrouping
from polypcount.review.review import Review, Snapshot
from polypcount.review.state import State

_KINDS = {"t": "counted", "a": "perhaps no polyp", "s": "too short", "h": "by hand"}
_MOST_SIMILAR = 40
_MOST_DECISIONS = 200
_MOST_KNOTS = 1000
_NOT_COMPARED = "Only tracklets that are counted, and whose pictures were compared in the count, can be compared."


def state_values(review: Review, moment: Snapshot, *, recording: bool) -> dict[str, Any]:
    """The whole state. recording: Whether frames can be shown."""
    data, state, original = review.data, moment.state, review.count_values
    low, high = moment.interval or (None, None)
    asked = moment.questions
    return {
        "version": moment.version,
        "count_id": review.count_id,
        "video": {
            "fps": data.basis.fps,
            "frame_count": data.frame_count,
            "width": data.size and data.size[0],
            "height": data.size and data.size[1],
            "seconds": data.seconds_of(data.frame_count),
            "times": _knots(data),
        },
        "original": {
            "count": original["count"],
            "low": original["interval"] and original["interval"]["low"],
            "high": original["interval"] and original["interval"]["high"],
            "meaning": original["interval"]["meaning"] if original["interval"] else original["no_interval"],
            "remarks": original["remarks"],
        },
        "count": moment.count,
        "low": low,
        "high": high,
        "certain": _certain(moment),
        "polyps": [_polyp_values(number, items, review, state) for number, items in state.members().items()],
        "items": [_item_values(item, data, state) for item in state.polyp_of],
        "together": sorted(map(list, data.together)),
        "questions": [_question_values(one, moment) for one in asked[:MOST_QUESTIONS]],
        "questions_left": len(asked),
        "settled": not asked,
        "undo": state.done[-1].effect.text if state.done else None,
        "redo": state.undone[-1].effect.text if state.undone else None,
        "merges": [
            {"decision": number, "into": merged.into, "from": merged.source}
            for number, merged in state.merges.items()
            if {state.polyp_of[item] for item in merged.items} == {merged.into}
            and set(state.items_of(merged.into)) - set(merged.items)
        ],
        "hint": None if state.hint == (None, None) else {"fewest": state.hint[0], "most": state.hint[1]},
        "recording": recording,
        "earlier_decisions": review.log.earlier,
        "decisions": [
            {
                "number": one.number,
                "time": one.time,
                "author": one.author,
                "text": one.effect.text,
                "undone": undone,
            }
            for one, undone in [*((one, False) for one in state.done), *((one, True) for one in state.undone[::-1])][
                -_MOST_DECISIONS:
            ]
        ],
    }


def preview_values(review: Review, moment: Snapshot) -> dict[str, Any]:
    """What regrouping would change."""
    polyp_of = preview(review.data, moment.state)
    after = moment.state.copy()
    after.polyp_of |= polyp_of
    count = len(after.polyps)
    low, high = Regrouping.of(review.data, after).ends(count) if moment.interval else (None, None)
    return {
        "version": moment.version,
        "count": count,
        "low": low,
        "high": high,
        "changes": [
            {"item": item, "from": moment.state.polyp_of[item], "to": polyp}
            for item, polyp in polyp_of.items()
            if moment.state.polyp_of[item] != polyp
        ],
        "polyp_of": polyp_of,
        "note": _unmet(count, moment.state),
    }


def similar_values(review: Review, moment: Snapshot, item: str, *, whole: bool = False) -> dict[str, Any]:
    """What else looks like an item, most similar on top. whole: Like its whole polyp, by the mean over tracklets."""
    regrouping, state = moment.regrouping, moment.state
    if item not in regrouping.items:
        return {"item": item, "similar": [], "reason": _NOT_COMPARED}
    likeness, is_probability = moment.likeness
    own = np.array([regrouping.items.index(item)])
    if whole:
        own = np.flatnonzero(regrouping.polyp == state.polyp_of[item])
    names = [regrouping.items[row] for row in own.tolist()]
    unit = np.stack([one.vectors[0] for one in regrouping.basis.evidence]).astype(np.float64)
    length = np.linalg.norm(unit, axis=1)
    unit /= np.where(length > 0, length, 1)[:, None]
    cosine = (1 + (unit @ unit[own].T).mean(axis=1)) / 2
    mean = likeness[own].mean(axis=0)
    constraints = regrouping.basis.grouping_input().constraints
    barred = constraints.forbidden[constraints.unit[own][:, None], constraints.unit].any(axis=0)
    times = [_seconds_of(name, review.data, state) for name in names]
    listed = []
    order = np.argsort(-mean, kind="stable")
    for row in order[~np.isin(order, own)][:_MOST_SIMILAR].tolist():
        other = regrouping.items[row]
        begin, end = _seconds_of(other, review.data, state)
        gap = min(max(0.0, begin - stop, start - end) for start, stop in times)
        reason = ""
        if any((name, other) in review.data.together or (other, name) in review.data.together for name in names):
            reason = "seen in one frame together"
        elif barred[row]:
            reason = "not the same polyp, by what was answered"
        listed.append(
            {
                "item": other,
                "polyp": state.polyp_of[other],
                "similarity": round(float(cosine[row]), 4),
                "probability": round(float(mean[row]), 4) if is_probability else None,
                "gap_seconds": None if review.data.basis.fps is None else round(gap, 2),
                "impossible": reason,
            }
        )
    return {"item": item, "similar": listed, "reason": ""}


def _seconds_of(item: str, data: ReviewData, state: State) -> tuple[float, float]:
    """When an item begins and ends; 0 where that is not known."""
    start, stop = (data.seconds_of(frame) or 0.0 for frame in span_of(item, data, state))
    return start, stop


def box_values(data: ReviewData, state: State, start: int, stop: int) -> list[list[Any]]:
    """The boxes of frames start .. stop - 1: frame, left, top, right, bottom, item."""
    first, last = np.searchsorted(data.boxes.frame, [start, stop])
    rows = [
        [int(frame), *(round(float(side), 1) for side in box), data.items[item] if item >= 0 else None]
        for frame, box, item in zip(
            data.boxes.frame[first:last], data.boxes.xyxy[first:last], data.item_of_box[first:last], strict=True
        )
    ]
    added = [[one.frame, *one.box, item] for item, one in state.added.items() if start <= one.frame < stop]
    return rows + added


def _knots(data: ReviewData) -> list[tuple[int, float]] | None:
    """When frames are shown where the rate is not constant: frames and seconds, to interpolate between."""
    if data.times is None:
        return None
    frames = np.unique(np.linspace(0, data.frame_count, min(data.frame_count + 1, _MOST_KNOTS)).round().astype(int))
    return [(frame, round(float(data.times[frame]), 3)) for frame in frames.tolist()]


def _picture_values(picture: KeptPicture, data: ReviewData) -> dict[str, Any]:
    return {
        "frame": picture.frame,
        "seconds": data.seconds_of(picture.frame),
        "width": picture.width,
        "height": picture.height,
        "quality": round(picture.quality, 4),
        "box": [round(side, 1) for side in picture.xyxy],
    }


def _item_values(item: str, data: ReviewData, state: State) -> dict[str, Any]:
    start, stop = span_of(item, data, state)
    views, whole = data.pictures_of(item)
    row = int(item[1:])
    counts = {"t": data.tracklets, "a": data.set_aside, "s": data.short}
    return {
        "id": item,
        "name": name_of(item),
        "kind": _KINDS[item[0]],
        "polyp": state.polyp_of[item] or None,
        "start_frame": start,
        "stop_frame": stop,
        "start_seconds": data.seconds_of(start),
        "stop_seconds": data.seconds_of(stop),
        "box_count": counts[item[0]][row].box_count if item[0] in counts else 1,
        "probability": round(data.set_aside[row].probability, 3) if item[0] == "a" else None,
        "pictures": [_picture_values(one, data) for one in views],
        "whole": whole and _picture_values(whole, data),
    }


def _polyp_values(number: int, items: Sequence[str], review: Review, state: State) -> dict[str, Any]:
    data = review.data
    spans = [span_of(item, data, state) for item in items]
    counted = review.counted_polyps.get(number)
    unchanged = counted is not None and {f"t{row}" for row in counted["tracklets"]} == set(items)
    return {
        "number": number,
        **state.details.get(number, Details()).model_dump(),
        "items": sorted(items, key=lambda item: span_of(item, data, state)),
        "certainty": counted["certainty"] if counted is not None and unchanged else None,
        "best": _best(items, data),
        "first_frame": min(start for start, _ in spans),
        "last_frame": max(stop for _, stop in spans) - 1,
        "first_seconds": data.seconds_of(min(start for start, _ in spans)),
        "last_seconds": data.seconds_of(max(stop for _, stop in spans) - 1),
        "visible_seconds": data.visible_seconds(items),
    }


def _best(items: Sequence[str], data: ReviewData) -> str:
    """The item that can be seen best."""

    def quality(item: str) -> float:
        views, whole = data.pictures_of(item)
        return max((one.quality for one in (*views, *([whole] if whole else []))), default=-1.0)

    return max(items, key=quality)


def _question_values(question: Question, moment: Snapshot) -> dict[str, Any]:
    sides = {}
    for name, items in (("first", question.first), ("second", question.second)):
        polyps = {moment.state.polyp_of[item] for item in items}
        sides[name] = {
            "polyp": polyps.pop() if len(polyps) == 1 else None,
            "items": list(items),
            "best": _best(items, moment.data) if items else None,
        }
    likeness = question.likeness if moment.likeness[1] else None
    return {**sides, "probability": likeness and round(likeness, 3)}


def _certain(moment: Snapshot) -> str:
    """What is left to know, in a sentence."""
    if moment.interval is None:
        return "No interval can be given for this recording; see the report."
    low, high = moment.interval
    if not moment.questions:
        return "More answers would not change the count."
    number = len(moment.questions)
    asked = "1 question is left" if number == 1 else f"{number} questions are left"
    return f"With everything decided so far: {low} to {high}. {asked}."


def _unmet(count: int, state: State) -> str:
    fewest, most = state.hint
    if fewest is not None and count < fewest:
        return f"The number should be at least {fewest}; with everything decided so far, {count} is the nearest."
    if most is not None and count > most:
        return f"The number should be at most {most}; with everything decided so far, {count} is the nearest."
    return ""
