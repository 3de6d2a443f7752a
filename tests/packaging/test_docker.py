"""The Dockerfile, built without Docker: its steps are run in a folder, those that need root are listed here."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.kit.spark_services import spark_services

CHECKOUT = Path(__file__).parents[2]
DOCKERFILE = CHECKOUT / "docker" / "Dockerfile"

# How a RUN step begins that is not run here, and why.
NOT_RUN = {
    "apt-get update": "installs Java into the system: needs root",
    "useradd": "makes the image's user and its folders in /opt: needs root",
}


@dataclass(frozen=True)
class Step:
    keyword: str
    flags: dict[str, str]
    words: str
    """What follows the flags, before variables are put in."""


@dataclass(frozen=True)
class Stage:
    name: str
    parent: str
    steps: list[Step] = field(default_factory=list)


def parse(text: str) -> dict[str, Stage]:
    """Stages by name; a parent that is no stage is an image."""
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    for step in parse_steps(text):
        if step.keyword == "FROM":
            found = re.fullmatch(r"(\S+) AS (\S+)", expand(step.words, arguments))
            assert found, step.words
            parent, name = found.groups()
            stages[name] = Stage(name, parent)
        elif stages:
            stages[next(reversed(stages))].steps.append(step)
        else:
            assert step.keyword == "ARG", f"{step.keyword} stands before the first FROM"
            argument, value = step.words.split("=", 1)
            arguments[argument] = value
    return stages


def parse_steps(text: str) -> Iterator[Step]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for instruction in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        keyword, _, rest = instruction.partition(" ")
        flags = {}
        while found := re.match(r"\s*--([a-z]+)=(\S+)\s+", rest):
            flags[found[1]] = found[2]
            rest = rest[found.end() :]
        yield Step(keyword, flags, rest.strip())


def expand(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], text)


class Workshop:
    """Builds stages as `docker build` does, in the folder that the arguments of the Dockerfile are pointed to."""

    def __init__(self, stages: dict[str, Stage], folder: Path, install: Callable[..., None]) -> None:
        self.stages, self.folder, self.install = stages, folder, install
        self.run_steps: list[str] = []
        self.variables: dict[str, dict[str, str]] = {}
        self.workdirs: dict[str, Path] = {}

    def build(self, name: str) -> Path:
        """The stage's folder, after all its steps and those of its parents, each stage once."""
        if name in self.variables:
            return self.folder / name
        stage = self.stages[name]
        if stage.parent in self.stages:
            self.build(stage.parent)
        python = f"{Path(sys.base_prefix) / 'bin'}:{os.defpath}"
        self.variables[name] = dict(self.variables.get(stage.parent, {"PATH": python}))
        self.workdirs[name] = self.workdirs.get(stage.parent, self.folder)
        for step in stage.steps:
            getattr(self, step.keyword.lower())(name, step)
        return self.folder / name

    def arg(self, stage: str, step: Step) -> None:
        """What `--build-arg` would set: folders here, and what makes a test slow left out."""
        name, _, value = step.words.partition("=")
        if value.startswith("/"):
            value = f"{self.folder / stage}{value}"
        self.variables[stage][name] = {"UV_COMPILE_BYTECODE": "0", "UV_LINK_MODE": "hardlink"}.get(name, value)

    def env(self, stage: str, step: Step) -> None:
        pairs = [pair.partition("=") for pair in shlex.split(expand(step.words, self.variables[stage]))]
        self.variables[stage].update({name: value for name, _, value in pairs})

    def workdir(self, stage: str, step: Step) -> None:
        self.workdirs[stage] = Path(expand(step.words, self.variables[stage]))
        self.workdirs[stage].mkdir(parents=True, exist_ok=True)

    def copy(self, stage: str, step: Step) -> None:
        *sources, target = expand(step.words, self.variables[stage]).split()
        if "from" in step.flags:
            self.build(step.flags["from"])
            assert sources == [target], "an absolute path is the same file in every stage here"
            return
        for source in sources:
            into = self.workdirs[stage] / target
            copy_allowed(CHECKOUT / source, into / Path(source).name if target.endswith("/") else into)

    def run(self, stage: str, step: Step) -> None:
        command = ["/bin/sh", "-ec", f'cd "$0" && {step.words}', str(self.workdirs[stage])]
        unwanted = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
        mine = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.install(command, {**mine, **self.variables[stage]})
        self.run_steps.append(step.words)


def copy_allowed(source: Path, target: Path) -> None:
    """Copy what the ignore file lets through."""
    files = [file for file in source.rglob("*") if file.is_file()] if source.is_dir() else [source]
    for file in files:
        if not ignored(file):
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)


def ignored(file: Path) -> bool:
    """As .dockerignore decides: the last pattern that fits the file or a folder above it."""
    decision = False
    relative = file.relative_to(CHECKOUT)
    for line in (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines():
        pattern = line.lstrip("!")
        above = [each.name if pattern.startswith("**/") else str(each) for each in (relative, *relative.parents[:-1])]
        if line and line[0] != "#" and any(fnmatch.fnmatchcase(each, pattern.removeprefix("**/")) for each in above):
            decision = not line.startswith("!")
    return decision


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    return parse(DOCKERFILE.read_text())


@pytest.fixture(scope="module")
def workshop(
    stages: dict[str, Stage], tmp_path_factory: pytest.TempPathFactory, install: Callable[..., None]
) -> Workshop:
    """Both environments, built."""
    built = Workshop(stages, tmp_path_factory.mktemp("images"), install)
    built.build("airflow-environment")
    built.build("spark-environment")
    return built


def variables_of(workshop: Workshop, stage: str) -> dict[str, str]:
    """What a process in an image of this environment sees."""
    environment = Path(workshop.variables[stage]["ENVIRONMENT"])
    variables = {"AIRFLOW_HOME": str(workshop.folder), "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    return {**variables, **java}


def tool(workshop: Workshop, stage: str, *command: str) -> str:
    """What a command of a built environment says."""
    done = subprocess.run(
        command, env=variables_of(workshop, stage), cwd=workshop.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def test_every_step_is_run_or_listed(stages: dict[str, Stage], workshop: Workshop) -> None:
    steps = [step.words for stage in stages.values() for step in stage.steps if step.keyword == "RUN"]
    left = [step for step in steps if step not in workshop.run_steps]
    assert len(left) == len(NOT_RUN)
    assert all(any(step.startswith(start) for step in left) for start in NOT_RUN), left


def test_airflow_environment_has_the_package_and_its_database(workshop: Workshop) -> None:
    code = "import airflow_provider_kpipe, asyncpg, psycopg2; print(airflow_provider_kpipe.__file__)"
    printed = tool(workshop, "airflow-environment", "python", "-c", code)
    assert Path(printed.strip()).is_relative_to(workshop.variables["airflow-environment"]["ENVIRONMENT"])


def test_both_environments_speak_the_same_spark(workshop: Workshop) -> None:
    code = "import sys, pyspark, confluent_kafka; print(sys.version, pyspark.__version__, confluent_kafka.version())"
    airflow, spark = (tool(workshop, f"{name}-environment", "python", "-c", code) for name in ("airflow", "spark"))
    assert airflow == spark


def test_spark_services_find_each_other(workshop: Workshop, tmp_path: Path) -> None:
    with spark_services(variables_of(workshop, "spark-environment"), tmp_path) as running:
        assert '"aliveworkers" : 1' in running.state()


def test_images_start_from_one_pinned_python(stages: dict[str, Stage]) -> None:
    images = {stage.parent for stage in stages.values()} - stages.keys()
    assert len(images) == 1
    assert re.fullmatch(r"python:\d+\.\d+[\w.]*-slim-[a-z]+", images.pop())


def test_images_run_as_a_user_without_rights(stages: dict[str, Stage]) -> None:
    for name in ("airflow", "spark"):
        assert [step.words for step in stages[name].steps if step.keyword == "USER"] == ["kpipe"]
        assert stages[name].parent == "runtime"


def test_copies_only_what_is_there(stages: dict[str, Stage]) -> None:
    for step in (step for stage in stages.values() for step in stage.steps if step.keyword == "COPY"):
        *sources, _ = step.words.split()
        if "from" in step.flags:
            assert step.flags["from"] in stages
            continue
        for source in sources:
            assert (CHECKOUT / source).exists(), source
            assert not ignored(CHECKOUT / source), source


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("docker/.env", True),
        (".git/config", True),
        ("tests/conftest.py", True),
        ("airflow_provider_kpipe/__pycache__/__init__.cpython-312.pyc", True),
        ("airflow_provider_kpipe/py.typed", False),
        ("requirements/runtime.txt", False),
    ],
)
def test_ignore_file_keeps_the_rest_out(path: str, expected: bool) -> None:
    assert ignored(CHECKOUT / path) is expected
