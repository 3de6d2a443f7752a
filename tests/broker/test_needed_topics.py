"""Topics that a pipeline or a redrive needs, and that the cluster lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaSource, PartitionScaling
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, RedriveTarget, Selection, ledger_topic_of
from airflow_provider_kpipe.exceptions import UnknownTopicError
from airflow_provider_kpipe.planning.needed_topics import check_needed_topics
from airflow_provider_kpipe.redriving.planning import check_redrive_topics
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench


def test_all_that_are_missing_are_named_at_once_with_what_they_are_for(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    check_needed_topics(bench.pipeline, bench.settings, bench.settings)
    lost = replace(
        bench.pipeline,
        source=KafkaSource("no-source"),
        destination=KafkaDestination("no-output"),
        dead_letter=KafkaDeadLetter("no-dead"),
        partitions=PartitionScaling(events_topic="no-events"),
    )
    with pytest.raises(UnknownTopicError) as missing:
        check_needed_topics(lost, bench.settings, bench.settings)
    at = f"on the cluster at {bench.bootstrap}"
    assert str(missing.value) == (
        f"pipeline {lost.name!r} lacks source topic 'no-source' {at} and destination topic 'no-output' {at} and dead "
        f"letter topic 'no-dead' {at} and events topic 'no-events' {at}: create what is missing, or correct its name "
        "in the pipeline"
    )


def test_only_what_is_missing_is_named(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    lost = replace(bench.pipeline, dead_letter=KafkaDeadLetter("no-dead"))
    with pytest.raises(UnknownTopicError, match=r"lacks dead letter topic 'no-dead' on the cluster at [^ ]*: c"):
        check_needed_topics(lost, bench.settings, bench.settings)


@pytest.mark.parametrize(("target", "role"), [("source", "source"), ("output", "destination")])
def test_a_redrive_names_its_own(broker: SandboxBroker, target: RedriveTarget, role: str) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    lost = replace(bench.pipeline, source=KafkaSource("no-source"), destination=KafkaDestination("no-output"))
    redrive = Redrive("source", Selection(), None, "no-parking", ledger_topic_of(lost), "no-source")
    with pytest.raises(UnknownTopicError) as missing:
        check_redrive_topics(bench.settings, bench.settings, lost, replace(redrive, target=target))
    said = str(missing.value)
    assert "parking topic 'no-parking'" in said
    assert f"{role} topic 'no-{'source' if target == 'source' else 'output'}'" in said
    assert said.count(" topic 'no-") == 2
