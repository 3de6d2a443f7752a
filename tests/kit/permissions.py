"""What the page about permissions asks for, and a broker that allows no more."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from docs_kit import OPERATIONS

from tests.kit.jobs import wait_for
from tests.kit.secure import SecureBroker

PAGE = OPERATIONS / "permissions.md"
_KINDS = {
    "--group": ResourceType.GROUP,
    "--topic": ResourceType.TOPIC,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefixed": ResourcePatternType.PREFIXED}
# A filter may leave a name, a user or a host open, of which the client's types do not know.
ANY_NAME: Any = None
_EVERYTHING = AclBindingFilter(
    ResourceType.ANY, ANY_NAME, ResourcePatternType.ANY, ANY_NAME, ANY_NAME, AclOperation.ANY, AclPermissionType.ANY
)


@dataclass(frozen=True)
class Grant:
    """One operation on what has a name, or on all that begins with it."""

    option: str
    name: str
    pattern: str
    operation: str

    @property
    def kind(self) -> str:
        """As an error calls it."""
        return self.option.lstrip("-").replace("-", " ")

    def __str__(self) -> str:
        return f"{self.operation} {self.kind} {self.name}{'*' if self.pattern == 'prefixed' else ''}"

    def covers(self, kind: str, name: str) -> bool:
        found = name == self.name if self.pattern == "literal" else name.startswith(self.name)
        return kind == self.kind and found

    def renamed(self, names: Mapping[str, str]) -> Grant:
        """For other names than those of the page."""
        pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return replace(self, name=re.sub(pattern, lambda found: names[found[0]], self.name))

    def binding(self, user: str) -> AclBinding:
        return AclBinding(
            _KINDS[self.option],
            self.name,
            _PATTERNS[self.pattern],
            f"User:{user}",
            "*",
            AclOperation[self.operation.upper()],
            AclPermissionType.ALLOW,
        )


def asked_for(role: str) -> list[Grant]:
    """What the block below a heading of the page grants, one operation at a time."""
    (text,) = re.findall(rf"^## {re.escape(role)}$.*?^```bash$(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    _, *lines = text.strip().splitlines()
    return [grant for line in lines for grant in _grants(line)]


def _grants(line: str) -> list[Grant]:
    command, option, name, *rest = shlex.split(line)
    assert command == "$acls", line
    options = list(zip(rest[::2], rest[1::2], strict=True))
    patterns = [value for each, value in options if each == "--resource-pattern-type"] or ["literal"]
    operations = [value for each, value in options if each == "--operation"]
    assert len(options) == len(operations) + (patterns != ["literal"]), line
    return [Grant(option, name, patterns[0], each) for each in operations]


class StrictBroker(SecureBroker):
    """Allows those who say who they are only what is granted, and the test everything."""

    def __init__(self, certificates: Path) -> None:
        authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        super().__init__(certificates, **{"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"})

    def allow_only(self, granted: Mapping[str, Iterable[Grant]]) -> None:
        """Grant this to each user, and nothing else."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        wanted = {grant.binding(user) for user, grants in granted.items() for grant in grants}
        held = set(admin.describe_acls(_EVERYTHING).result(30))
        changes: dict[Any, Any] = {
            **(admin.delete_acls([_filter(binding) for binding in held - wanted]) if held - wanted else {}),
            **(admin.create_acls(list(wanted - held)) if wanted - held else {}),
        }
        for change in changes.values():
            change.result(30)
        wait_for(lambda: set(admin.describe_acls(_EVERYTHING).result(30)) == wanted, "what is granted")


def _filter(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )
