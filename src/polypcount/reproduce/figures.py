"""A figure of each table: FR of its rows, its spread, and the published value."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polypcount.evaluation.figures import COLOURS, GREY, PLAIN, blank, settle, shown
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import PaperTable
from polypcount.reproduce.tables import rules_of, score_spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {"fixed": ("D", COLOURS[2]), "closest": ("o", COLOURS[0]), "budget": ("s", COLOURS[1])}
_TICKS = (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)


def draw_table(table: PaperTable, runs: Mapping[str, Sequence[Run]]) -> "Figure":
    """FR of each row and rule, on a logarithmic axis.

    Mark: mean over runs. Thick bar: from the lowest run to the highest. Thin line: the 95 % interval over videos, with
    its ends averaged over runs. Diamond: published.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, NullLocator

    if not any(runs.get(line.row) or line.published for line in table.lines):
        return blank("nothing was run", table.title)
    figure = Figure(figsize=(8.6, 0.55 * len(table.lines) + 1.5), layout="constrained")
    axes = figure.add_subplot()
    values, used = [1.0, 2.0], set()
    for number, line in enumerate(table.lines):
        of_row = runs.get(line.row, ())
        rules = rules_of(of_row)
        for index, rule in enumerate(rules):
            fr = score_spread(of_row, rule, "fr")
            if math.isnan(fr.mean):
                continue
            level = number + 0.3 * (index - (len(rules) - 1) / 2)
            shape, colour = _STYLES[rule]
            used.add(rule)
            axes.plot([fr.low, fr.high], [level] * 2, color=colour, linewidth=1)
            axes.plot([fr.least, fr.most], [level] * 2, color=colour, linewidth=4, alpha=0.5)
            axes.plot([fr.mean], [level], shape, color=colour, markersize=6, markeredgecolor="white", zorder=3)
            values += [end for end in (fr.low, fr.high, fr.least, fr.most) if end > 0]
        if line.published:
            style: dict[str, Any] = {"color": "black", "markerfacecolor": "none", "markersize": 7, "zorder": 4}
            axes.plot([line.published.fr], [number], "d", **style)
            values.append(line.published.fr)
    axes.axvline(1, color=GREY, linewidth=0.9, zorder=0)
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 1.1, max(values) * 1.1)
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in _TICKS if min(values) <= tick <= max(values) * 1.1]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    labels = [shown(line.label, 40) for line in table.lines]
    axes.set_yticks(range(len(labels)), labels, fontsize=9, **PLAIN)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel("FR: groups per polyp, 1 is perfect")
    axes.set_title(table.title, fontsize=11, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    handles = [Line2D([], [], color=_STYLES[rule][1], marker=_STYLES[rule][0]) for rule in _STYLES if rule in used]
    names = [rule if rule != "fixed" else "nothing to choose" for rule in _STYLES if rule in used]
    handles.append(Line2D([], [], color="black", marker="d", markerfacecolor="none", linestyle="none"))
    figure.legend(handles, [*names, "published"], loc="outside right upper", frameon=False, fontsize=8.5)
    return settle(figure)
