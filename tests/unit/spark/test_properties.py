from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.spark.properties import DEFAULTS, FORCED, LOCAL_DEFAULTS, spark_properties, write_properties

# Spark trims what it reads: everything up to a space, save for the ends of lines.
TRIMMED = "".join(map(chr, range(33))).replace("\r", "").replace("\n", "")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def read_as_java(file: Path) -> dict[str, str]:
    """What java.util.Properties reads, and Spark makes of it."""
    found = {}
    for line in re.split(r"\r\n|\r|\n", file.read_bytes().decode("utf-8")):
        if not line.lstrip(" \t\f") or line.lstrip(" \t\f")[0] in "#!":
            continue
        assert not re.search(r"(?<!\\)(\\\\)*\\$", line), "no line goes on in the next"
        entry = re.fullmatch(r"[ \t\f]*((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert entry, line
        name, value = entry.groups()
        found[unescaped(name)] = unescaped(value).strip(TRIMMED)
    return found


def unescaped(text: str) -> str:
    def meant(escape: re.Match[str]) -> str:
        code, letter = escape.groups()
        return chr(int(code, 16)) if code else ESCAPES.get(letter, letter)

    halves = re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", meant, text, flags=re.DOTALL)
    return halves.encode("utf-16", "surrogatepass").decode("utf-16")


@given(value=st.text())
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_is_read_back_as_it_was_written(tmp_path: Path, value: str) -> None:
    target = tmp_path / "kpipe.properties"
    target.unlink(missing_ok=True)
    write_properties(target, {"spark.a": value, "spark.b": "next"})
    assert read_as_java(target) == {"spark.a": value.strip(TRIMMED), "spark.b": "next"}


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "a=b:c#d!e f",
        "C:\\dir\\new",
        "two\nlines\r\nor\rthree",
        "tab\tbed",
        "\\u0041",
        "\\",
        "é",
        "漢字",
        "🙂",
        "",
        "\n",
    ],
    ids=repr,
)
def test_a_value_is_read_back_as_it_was_written(tmp_path: Path, value: str) -> None:
    written = write_properties(tmp_path / "kpipe.properties", {"spark.a": value})
    assert read_as_java(written) == {"spark.a": value}


@pytest.mark.parametrize(
    "name",
    [
        "spark.a",
        "spark.hadoop.x-y_z",
        "spark.with:colon",
        "spark.with=sign",
        "spark.with space",
        "spark.\\d",
    ],
)
def test_a_name_is_read_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    written = write_properties(tmp_path / "kpipe.properties", {name: "value"})
    assert read_as_java(written) == {name: "value"}


def test_the_file_is_private(tmp_path: Path) -> None:
    written = write_properties(tmp_path / "kpipe.properties", {"spark.a": "hush"})
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_the_defaults_are_there_and_the_user_may_change_them() -> None:
    assert DEFAULTS.items() <= spark_properties("yarn", {}).items()
    changed = spark_properties("yarn", {"spark.ui.enabled": "true", "spark.executor.cores": "2"})
    assert changed["spark.ui.enabled"] == "true"
    assert changed["spark.executor.cores"] == "2"


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*]", True),
        ("yarn", False),
        ("spark://h:7077", False),
        ("k8s://https://h", False),
    ],
)
def test_a_local_driver_stays_on_the_loopback(master: str, local: bool) -> None:
    properties = spark_properties(master, {})
    assert (LOCAL_DEFAULTS.items() <= properties.items()) is local
    assert ("spark.driver.host" in properties) is local


def test_the_user_may_choose_the_host_of_a_local_driver() -> None:
    assert spark_properties("local", {"spark.driver.host": "h"})["spark.driver.host"] == "h"


def test_speculation_is_off() -> None:
    assert spark_properties("yarn", {})["spark.speculation"] == "false"


@pytest.mark.parametrize("name", FORCED)
def test_properties_of_kpipe_itself_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"spark_conf sets '{name}', which kpipe sets itself"):
        spark_properties("yarn", {name: "true"})


@pytest.mark.parametrize(("value", "written"), [(2, "2"), (0.5, "0.5"), ("4g", "4g")], ids=repr)
def test_numbers_are_taken_as_they_are_in_python(value: Any, written: str) -> None:
    assert spark_properties("yarn", {"spark.x": value})["spark.x"] == written
