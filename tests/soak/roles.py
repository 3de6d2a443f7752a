"""Which part of production a process is, from its command line and its parent. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

SERVICES = (
    "api server",
    "scheduler",
    "executor",
    "dag processor",
    "triggerer",
    "trigger runner",
    "database",
    "broker",
)
"""They live as long as the soak: their processes are summed."""
PASSING = ("dag parser", "task", "submit", "jvm", "driver", "python worker", "other")
"""They live for a run: each process is compared with those of other runs."""
OF_RUNS = ("task", "submit", "jvm", "driver", "python worker", "other")
"""Of these, nothing may be left when no run is under way."""
NOT_JUDGED = ("soak", "supervisor")
"""What only the soak has."""

_CHILD_OF = {
    "scheduler": "executor",
    "executor": "task",
    "dag processor": "dag parser",
    "dag parser": "dag parser",
    "triggerer": "trigger runner",
    "task": "submit",
    "submit": "submit",
    "database": "database",
    "api server": "api server",
}


def role_of(command: Sequence[str], parent: str) -> str:
    """Name the part; a process that says nothing of itself is one that its parent has forked."""
    words = " ".join(command)
    for role, is_it in _SAYS.items():
        if is_it(command, words):
            # Forked, it still has the command line of its parent.
            return _CHILD_OF.get(parent, role) if role == parent else role
    return _CHILD_OF.get(parent, "other")


_SAYS: Mapping[str, Callable[[Sequence[str], str], bool]] = {
    "supervisor": lambda command, words: "demo.supervisor" in command,
    "broker": lambda command, words: "kafka.Kafka" in command,
    "database": lambda command, words: words.startswith("postgres") or _program(command) == "postgres",
    "driver": lambda command, words: "kpipe_run.py" in words and "SparkSubmit" not in words and _is_python(command),
    "python worker": lambda command, words: "pyspark.daemon" in command,
    "jvm": lambda command, words: (
        _program(command) == "java" and "SparkSubmit" in words and "org.apache.spark.launcher.Main" not in words
    ),
    "api server": lambda command, words: words.startswith("airflow api_server") or words.endswith("airflow api-server"),
    "scheduler": lambda command, words: "airflow scheduler" in words,
    "dag processor": lambda command, words: "airflow dag-processor" in words,
    "triggerer": lambda command, words: "airflow triggerer" in words,
}


def _program(command: Sequence[str]) -> str:
    return PurePath(command[0]).name if command else ""


def _is_python(command: Sequence[str]) -> bool:
    return _program(command).startswith("python") and "die_with_parent.py" not in " ".join(command[:5])
