"""Pure functions that draw bars of records per second, as SVG that a browser and GitHub show as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from bench.report import Summary, about_lines

WIDTH, LEFT, RIGHT = 900, 270, 110
ROW, BAR = 26, 16
OURS, PEERS, WHISKER, TEXT, PAPER = "#1f6feb", "#9aa4b0", "#24292f", "#24292f", "#ffffff"
FONT = "font-family='system-ui, sans-serif'"
NOTE_LETTERS = 140


def chart(title: str, summaries: Sequence[Summary], about: Mapping[str, Any]) -> str:
    """Draw a bar for each summary, as long as its median rate, with a line from its slowest to its fastest round."""
    most = max(each.records / each.fastest_seconds for each in summaries)
    scale = (WIDTH - LEFT - RIGHT) / most
    parts = [_text(16, 26, title, size=16, weight="bold")]
    top = 44
    for each in summaries:
        parts += _bar(each, top, scale)
        top += ROW
    for line in _wrapped("; ".join(about_lines(about))):
        top += 15
        parts.append(_text(16, top, line, size=10))
    height = top + 14
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}'>"
    return "\n".join([head, f"<rect width='{WIDTH}' height='{height}' fill='{PAPER}'/>", *parts, "</svg>", ""])


def _bar(each: Summary, top: int, scale: float) -> list[str]:
    long = each.records_per_second * scale
    slowest, fastest = (
        LEFT + each.records / seconds * scale for seconds in (each.slowest_seconds, each.fastest_seconds)
    )
    middle = top + BAR / 2
    return [
        _text(LEFT - 10, top + 13, each.contestant, anchor="end"),
        f"<rect x='{LEFT}' y='{top}' width='{long:.1f}' height='{BAR}' fill='{_colour(each.contestant)}'/>",
        f"<line x1='{slowest:.1f}' x2='{fastest:.1f}' y1='{middle}' y2='{middle}' stroke='{WHISKER}'/>",
        _text(max(fastest, LEFT + long) + 6, top + 13, f"{each.records_per_second:,.0f}/s"),
    ]


def _colour(contestant: str) -> str:
    return OURS if contestant.startswith("kpipe") else PEERS


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f"<text x='{x:.1f}' y='{y}' {FONT} font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' "
        f"fill='{TEXT}'>{escape(text)}</text>"
    )


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= NOTE_LETTERS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines
