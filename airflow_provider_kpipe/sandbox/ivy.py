"""Downloads of jars with the Ivy that PySpark bundles, so that no Maven is needed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from airflow_provider_kpipe.sandbox.java import SMALL_JVM, find_java, java_command

TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class Dependency:
    """A module to fetch, by its `group:module:version`, alone or with its own dependencies."""

    coordinates: str
    transitive: bool = False

    def to_xml(self) -> str:
        """Format this dependency as an element of an Ivy file."""
        group, module, version = self.coordinates.split(":")
        return (
            f'<dependency org="{group}" name="{module}" rev="{version}" conf="default->default"'
            f' transitive="{str(self.transitive).lower()}"/>'
        )


def retrieve(dependencies: Iterable[Dependency], pattern: str, work: Path) -> None:
    """Download `dependencies` to the paths that `pattern` gives; Ivy's own files all stay in `work`.

    The file in `$KPIPE_IVY_SETTINGS`, if set, names the sources, in Ivy's own settings format.
    """
    dependencies = tuple(dependencies)
    work.mkdir(parents=True, exist_ok=True)
    ivy_file = work / "ivy.xml"
    ivy_file.write_text(
        '<ivy-module version="2.0"><info organisation="kpipe" module="sandbox"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(item.to_xml() for item in dependencies)}</dependencies></ivy-module>"
    )
    own_settings = os.environ.get("KPIPE_IVY_SETTINGS")
    settings = Path(own_settings).absolute() if own_settings else _default_settings(dependencies, work)
    command = java_command(
        find_java(),
        SMALL_JVM,
        [_ivy_jar()],
        work,
        "org.apache.ivy.Main",
        [
            *("-settings", str(settings)),
            *("-ivy", str(ivy_file)),
            *("-cache", str(work / "cache")),
            *("-retrieve", pattern),
        ],
    )
    # Without this, Ivy would look for settings and write into a folder of the user's home.
    command.insert(1, f"-Divy.default.ivy.user.dir={work / 'user'}")
    code, output = process.run(command, folder=work, timeout=TIMEOUT_SECONDS)
    if code != 0:
        raise SandboxError(
            f"Ivy could not download the jars of Kafka (exit code {code}). Without direct access to Maven"
            " Central, let KPIPE_IVY_SETTINGS name an Ivy settings file for your mirror, or set the proxy"
            f" in JAVA_TOOL_OPTIONS. It said:\n{tail(output)}"
        )


def _default_settings(dependencies: tuple[Dependency, ...], work: Path) -> Path:
    """Write settings for Maven Central, which Ivy knows by itself.

    Pinned modules are fetched without their descriptions and the registry's checksums, as the caller has better
    ones: Kafka's jars took 6 seconds this way, and 38 seconds with them.
    """
    resolving = any(item.transitive for item in dependencies)
    settings = work / "settings.xml"
    settings.write_text(
        "<ivysettings>"
        f'<property name="ivy.checksums" value="{"sha1" if resolving else ""}"/>'
        '<settings defaultResolver="central"/>'
        '<resolvers><ibiblio name="central" m2compatible="true"'
        f' usepoms="{str(resolving).lower()}"/></resolvers>'
        "</ivysettings>"
    )
    return settings


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")  # finds the package without importing it
    for place in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise SandboxError("no PySpark with its jars in this Python, and Ivy comes with it: pip install pyspark")
