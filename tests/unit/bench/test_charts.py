from __future__ import annotations

from xml.etree import ElementTree

from bench.charts import LEFT, RIGHT, WIDTH, chart
from bench.report import Timing, summarise

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**seconds: list[float]) -> ElementTree.Element:
    timings = [
        Timing("copy", name, "warm", number, 1_000, each)
        for name, own in seconds.items()
        for number, each in enumerate(own, start=1)
    ]
    return ElementTree.fromstring(chart("copy <warm>", summarise(timings), {"machine": {"cores": 2}, "seed": 1}))


def bars(svg: ElementTree.Element) -> list[float]:
    """Lengths, without the paper that they are drawn on."""
    return [float(each.attrib["width"]) for each in svg.findall(f"{SVG}rect")][1:]


def test_a_bar_is_as_long_as_its_rate_and_the_fastest_round_reaches_the_end() -> None:
    svg = drawn(kpipe=[1.0, 1.0], peer=[2.0, 2.0])
    assert bars(svg) == [WIDTH - LEFT - RIGHT, (WIDTH - LEFT - RIGHT) / 2]


def test_a_line_goes_from_the_slowest_to_the_fastest_round() -> None:
    svg = drawn(kpipe=[1.0, 2.0, 4.0])
    (line,) = svg.findall(f"{SVG}line")
    length = WIDTH - LEFT - RIGHT
    assert (float(line.attrib["x1"]), float(line.attrib["x2"])) == (LEFT + length / 4, LEFT + length)


def test_it_says_who_how_fast_and_where() -> None:
    texts = [each.text for each in drawn(kpipe=[1.0]).findall(f"{SVG}text")]
    assert texts == ["copy <warm>", "kpipe", "1,000/s", "machine: cores 2; seed: 1"]


def test_ours_has_a_colour_of_its_own() -> None:
    colours = [each.attrib["fill"] for each in drawn(kpipe=[1.0], peer=[2.0]).findall(f"{SVG}rect")][1:]
    assert len(set(colours)) == 2
