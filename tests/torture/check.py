"""Check a kept folder again: `python -m tests.torture.check FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.torture.checker.verdict import check


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.torture.check FOLDER\n")
        return 2
    verdict = check(Path(arguments[0]))
    sys.stdout.write("\n".join(verdict.lines()) + "\n")
    return 1 if verdict.anomalies else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
