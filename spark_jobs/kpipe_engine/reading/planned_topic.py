"""Check that a topic is still the planned one, before the progress of records read from it is stored."""

from __future__ import annotations

import time

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.plan import Plan
from kpipe_engine.client_settings import Settings
from kpipe_engine.errors import NoAnswerError, PartitionHaltedError, needing

LOOK_SECONDS = 30.0
ASK_SECONDS = 3.0
GONE_SECONDS, AGAIN_SECONDS = 5.0, 0.2
_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)


class PlannedTopic:
    """The topic of the plan, by its id, which changes when the topic is deleted or re-created.

    A consumer silently resumes at the same offset in a re-created topic. The id of a topic never comes back: if it is
    the planned one after records were read, they are of the planned topic.
    """

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self._settings, self._name, self._id = settings, plan.topic, plan.topic_id
        self._admin: AdminClient | None = None

    def check(self) -> None:
        """Stop the partition if the records that were read may be those of another topic."""
        until = time.monotonic() + GONE_SECONDS
        # A broker that has just started may not know the topic yet.
        while (found := self._look()) is None and time.monotonic() < until:
            time.sleep(AGAIN_SECONDS)
        if found is None:
            raise PartitionHaltedError(
                f"topic {self._name!r} was deleted while it was read: what was read since then is not stored"
            )
        if found != self._id:
            raise PartitionHaltedError(
                f"topic {self._name!r} was re-created while it was read (its id was {self._id}, now it is {found}): "
                "what was read since then is not stored; start a new run"
            )

    def close(self) -> None:
        # An admin client has no close method: it ends when the last reference to it is gone.
        self._admin = None

    def _look(self) -> str | None:
        """Return the topic's id, or None if there is no such topic."""
        until = time.monotonic() + LOOK_SECONDS
        while True:
            try:
                with needing(topic=self._name):
                    return self._ask()
            except (KafkaException, TimeoutError) as failure:
                # A client that knows an earlier broker keeps to it, even if that broker is gone.
                self.close()
                if isinstance(failure, KafkaException) and failure.args[0].code() in _NOT_THERE:
                    return None
                if time.monotonic() >= until:
                    raise NoAnswerError(
                        f"the broker did not answer within {LOOK_SECONDS:g} s when topic {self._name!r} was looked at "
                        f"({failure})"
                    ) from failure
            time.sleep(AGAIN_SECONDS)

    def _ask(self) -> str:
        admin = self._admin = self._admin or AdminClient(connecting({"log_level": 3, **self._settings}))
        asked = admin.describe_topics(TopicCollection([self._name]), request_timeout=ASK_SECONDS)
        return str(asked[self._name].result(ASK_SECONDS).topic_id)
