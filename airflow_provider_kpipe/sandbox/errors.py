"""The errors of the sandbox itself."""

from __future__ import annotations


class SandboxError(RuntimeError):
    """Inability of the sandbox to do what was asked; the message says what to change."""


def tail(text: str, lines: int = 20) -> str:
    """Return the last lines of a program's output, indented, for the end of an error message."""
    kept = text.strip().splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in kept) or "    (it wrote nothing)"
