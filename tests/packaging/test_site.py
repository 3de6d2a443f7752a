"""The site of the documentation: it is built from the same Markdown, asks no other host, and leads to every page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
PICTURES = sorted((DOCS / "pictures").glob("*.svg"))
# What a browser fetches by itself; a reader decides about a plain link.
FETCHED = ("src", "srcset", "href", "data", "poster", "action")
FOREIGN = re.compile(r"\s*(?:https?:)?//")
FIRST_SCREEN = 40
# A decision begins with what was decided.
OPENINGS = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "decisions")
SVG = "{http://www.w3.org/2000/svg}"
DRAWN_IN_CHARACTERS = re.compile(r"[\u2500-\u257f\u25b2-\u25c5]")


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def make_docs(checkout: Path, site: Path) -> list[str]:
    """The command that builds the site, with the environment at work, which is made already."""
    environment = Path(sys.prefix)
    return ["make", "-C", f"{checkout}", "-o", f"{environment}/.ready", "docs", f"VENV={environment}", f"SITE={site}"]


@pytest.fixture(scope="module")
def site(install: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(make_docs(CHECKOUT, folder))
    return folder


def pages(site: Path) -> Iterator[tuple[str, Elements]]:
    for file in sorted(site.rglob("*.html")):
        yield str(file.relative_to(site)), Elements(file)


def built(page: Path) -> str:
    """The name of the page that is built of a page of docs/."""
    return str(page.relative_to(DOCS).with_suffix(".html"))


def test_no_page_asks_another_host(site: Path) -> None:
    fetched = {
        (name, tag, attributes[each])
        for name, elements in pages(site)
        for tag, attributes in elements.found
        for each in FETCHED
        if tag != "a" and each in attributes
    }
    assert len(fetched) > 100
    assert {each for each in fetched if FOREIGN.match(each[-1])} == set()


def test_no_style_asks_another_host(site: Path) -> None:
    files = [*site.rglob("*.css"), *site.rglob("*.html"), *site.rglob("*.svg")]
    addresses = [
        each for file in files for each in re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)", file.read_text())
    ]
    assert addresses
    assert [each for each in addresses if FOREIGN.match(each)] == []


def test_no_page_has_a_diagram_for_which_the_theme_would_fetch_a_program(site: Path) -> None:
    classes = {
        each for _, elements in pages(site) for _, found in elements.found for each in found.get("class", "").split()
    }
    assert "md-content" in classes
    assert "mermaid" not in classes


def test_every_page_is_in_the_navigation(site: Path) -> None:
    elements = Elements(site / "index.html").found
    links = {found["href"] for tag, found in elements if tag == "a" and "md-nav__link" in found.get("class", "")}
    every = {built(page) for page in DOCS.rglob("*.md")}
    assert len(every) >= 40
    assert every <= links
    assert {name for name, _ in pages(site)} - {"404.html"} <= links


def test_every_picture_is_there_and_is_told_in_words(site: Path) -> None:
    shown = [(name, found) for name, elements in pages(site) for tag, found in elements.found if tag == "img"]
    assert [name for name, found in shown if len(found.get("alt", "").split()) < 5] == []
    sources = {(site / name).parent.joinpath(found["src"]).resolve() for name, found in shown}
    assert {each for each in sources if not each.is_file()} == set()
    assert {each.name for each in sources} == {picture.name for picture in PICTURES}


def test_a_link_that_leads_nowhere_fails_the_build(site: Path, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(".*", "site", "tests", "__pycache__")
    shutil.copytree(CHECKOUT, tmp_path / "checkout", ignore=ignored)
    with (tmp_path / "checkout" / "docs" / "guide" / "runs.md").open("a") as page:
        page.write("\n[A page that is not there](elsewhere.md)\n")
    done = subprocess.run(
        make_docs(tmp_path / "checkout", tmp_path / "site"), capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode != 0
    assert "'elsewhere.md'" in done.stderr


@pytest.mark.parametrize("page", OPENINGS, ids=lambda page: page.stem)
def test_a_page_opens_with_its_purpose_and_shows_something(page: Path) -> None:
    title, purpose, *_ = page.read_text().split("\n\n")
    assert re.fullmatch(r"# [^\n]+", title)
    assert re.search(r"\b(This page|It) is for ", " ".join(purpose.split()))
    first_screen = page.read_text().splitlines()[:FIRST_SCREEN]
    assert any(line.startswith(("```", "| ", "![")) for line in first_screen)


@pytest.mark.parametrize("page", [CHECKOUT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_nothing_is_drawn_in_characters(page: Path) -> None:
    assert DRAWN_IN_CHARACTERS.findall(page.read_text()) == []


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_a_picture_is_readable_on_light_and_dark_pages(picture: Path) -> None:
    text = picture.read_text()
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG}title")
    assert int(root.attrib["width"]) <= 720
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
    # Its own ground, so that no page shows through, and letters of one size and kind.
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.attrib["class"] == "page"
    assert re.findall(r"font(?:-family|-size)?: ([^;]+);", text) == ["13px Helvetica, Arial, sans-serif"]
    assert "<image" not in text
    assert re.findall(r"\w+://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
