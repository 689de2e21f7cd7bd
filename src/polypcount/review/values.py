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
from polypcount.review.review import Moment, Review
from polypcount.review.state import State

_KINDS = {"t": "counted", "a": "perhaps no polyp", "s": "too short", "h": "by hand"}
_MOST_SIMILAR = 40
_MOST_DECISIONS = 200


def state_values(review: Review, moment: Moment, *, recording: bool) -> dict[str, Any]:
    """The whole state. recording: Whether frames can be shown."""
    data, state, original = review.data, moment.state, review.count_values
    low, high = moment.interval or (None, None)
    asked = moment.questions
    return {
        "version": moment.version,
        "video": {
            "fps": data.basis.fps,
            "frame_count": data.frame_count,
            "width": data.size and data.size[0],
            "height": data.size and data.size[1],
            "seconds": data.seconds_of(data.frame_count),
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


def preview_values(review: Review, moment: Moment) -> dict[str, Any]:
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


def similar_values(review: Review, moment: Moment, item: str) -> dict[str, Any]:
    """What else looks like an item, most similar on top."""
    regrouping, state = moment.regrouping, moment.state
    if item not in regrouping.items:
        return {"item": item, "similar": []}
    likeness, is_probability = moment.likeness
    own = regrouping.items.index(item)
    unit = np.stack([one.vectors[0] for one in regrouping.basis.evidence]).astype(np.float64)
    length = np.linalg.norm(unit, axis=1)
    unit /= np.where(length > 0, length, 1)[:, None]
    cosine = (1 + unit @ unit[own]) / 2
    constraints = regrouping.basis.grouping_input().constraints
    barred = constraints.forbidden[constraints.unit[own], constraints.unit]
    order = [row for row in np.argsort(-likeness[own], kind="stable").tolist() if row != own]
    start, stop = span_of(item, review.data, state)
    listed = []
    for row in order[:_MOST_SIMILAR]:
        other = regrouping.items[row]
        begin, end = span_of(other, review.data, state)
        gap = max(0, begin - stop, start - end)
        reason = ""
        if (item, other) in review.data.together or (other, item) in review.data.together:
            reason = "seen in one frame together"
        elif barred[row]:
            reason = "answered: not the same polyp"
        listed.append(
            {
                "item": other,
                "polyp": state.polyp_of[other],
                "similarity": round(float(cosine[row]), 4),
                "probability": round(float(likeness[own, row]), 4) if is_probability else None,
                "gap_seconds": None if review.data.basis.fps is None else round(gap / review.data.basis.fps, 2),
                "impossible": reason,
            }
        )
    return {"item": item, "similar": listed}


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


def _picture_values(picture: KeptPicture) -> dict[str, Any]:
    return {
        "frame": picture.frame,
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
        "pictures": [_picture_values(one) for one in views],
        "whole": whole and _picture_values(whole),
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
        "visible_seconds": data.visible_seconds(items),
    }


def _best(items: Sequence[str], data: ReviewData) -> str:
    """The item that can be seen best."""

    def quality(item: str) -> float:
        views, whole = data.pictures_of(item)
        return max((one.quality for one in (*views, *([whole] if whole else []))), default=-1.0)

    return max(items, key=quality)


def _question_values(question: Question, moment: Moment) -> dict[str, Any]:
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


def _certain(moment: Moment) -> str:
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
