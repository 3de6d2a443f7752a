"""A broker that asks what its clients may do."""

from __future__ import annotations

from airflow_provider_kpipe.sandbox import SandboxBroker


def guarded_broker() -> SandboxBroker:
    """All clients have one name here, and what no rule is about, everybody may use."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    return SandboxBroker(overrides={"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"})
