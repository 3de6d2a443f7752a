"""Check of the subject of a commit: `type(scope): what it does`, in the imperative, in at most 72 characters.

A hook calls it with the file that holds the message.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
TYPES = ("bench", "build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test")
_SUBJECT = re.compile(rf"({'|'.join(TYPES)})(\([a-z0-9 ,._-]+\))?!?: (?P<words>\S.*)")
# Git writes these itself.
_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")
# "adds" and "added" describe a commit; "add" says what it does. A verb of its own may end so, too.
_NO_IMPERATIVE = re.compile(r"[a-z]+(ed|ing|[^s']s)")
_VERBS = frozenset({"bring", "embed", "feed", "focus", "process", "seed", "shed", "speed"})


def faults(message: str) -> list[str]:
    """List what is wrong with the subject of a message."""
    subject = message.partition("\n")[0]
    if subject.startswith(_BY_GIT):
        return []
    found = []
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters: use at most {LONGEST}")
    matched = _SUBJECT.fullmatch(subject)
    if matched is None:
        return [*found, f"the subject {subject!r} is not 'type: words': the types are {', '.join(TYPES)}"]
    first = matched["words"].split()[0].rstrip(",:")
    if not first[0].islower():
        found.append(f"the subject begins with {first!r}: begin with a verb in lower case")
    elif _NO_IMPERATIVE.fullmatch(first) and first not in _VERBS:
        found.append(f"the subject begins with {first!r}: say what the commit does, as in 'add' or 'refuse'")
    if subject.endswith("."):
        found.append("the subject ends in a period: leave it out")
    return found


if __name__ == "__main__":
    if wrong := faults(Path(sys.argv[1]).read_text()):
        sys.exit("\n".join(wrong))
