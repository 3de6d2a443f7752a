"""A hook of MkDocs: lets the pages of the site lead to what lies outside of docs/.

Markdown of the checkout that is listed here becomes a page. A file that a page links is copied beside the pages. The
text of a link to a folder without a page stays, and the link goes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs"
# Pages of the site that lie elsewhere in the checkout.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/rules.md",
    "README.md": "readme.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "speed/index.md",
    "bench/results/latest.md": "speed/latest.md",
    "docker/README.md": "operations/docker.md",
}
# A code host lists a folder; the site has a page for some of them.
FOLDERS = {
    "docker": PAGES["docker/README.md"],
    "docs/decisions": "decisions/0001-one-engine.md",
    "docs/guide": "guide/runs.md",
}
_PLACES = {page: place for place, page in PAGES.items()}
# Code comes first: a link in it is none. Addresses of other hosts and anchors in the page itself stay as they are.
_CODE = r"(?P<code>^ *```.*?^ *```$|`[^`\n]+`)"
_TARGET = r"\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)"
_LINK = re.compile(rf"{_CODE}|{_TARGET}", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside of docs/."""
    for place, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / place)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page to where the site has what they name."""
    own = page.file.src_uri
    folder = PurePosixPath(_PLACES.get(own, f"{DOCS}/{own}")).parent

    def lead(link: re.Match[str]) -> str:
        if link["code"]:
            return link[0]
        place = os.path.normpath(folder / link["path"])
        found = _on_the_site(place, config, files)
        if found is None:
            return link["text"]
        relative = os.path.relpath(found, PurePosixPath(own).parent)
        return f"[{link['text']}]({relative}{link['anchor'] or ''})"

    return _LINK.sub(lead, markdown)


def _on_the_site(place: str, config: MkDocsConfig, files: Files) -> str | None:
    """Find the file of the site for one of the checkout; one that is not there is left for --strict to complain of."""
    known = PAGES.get(place) or FOLDERS.get(place)
    if known or (ROOT / place).is_dir():
        return known
    if place.startswith(f"{DOCS}/"):
        return place.removeprefix(f"{DOCS}/")
    copied = f"files/{place}"
    if (ROOT / place).is_file() and files.get_file_from_path(copied) is None:
        files.append(File.generated(config, copied, abs_src_path=str(ROOT / place)))
    return copied
