"""The provider's own errors, without a dependency on Airflow: operators translate them.

`retriable` is true if trying the same task again may help. These are the kinds; those with a star are retriable::

    KpipeError
        ConnectionSettingsError
        KafkaUnavailableError *
            UnreachableError *
            HeldUpError *
        ForbiddenError
        UnknownTopicError
        PlanError
        StalePlanError
        GroupInUseError *
        GroupMovedError
        CommitError *
        IncompleteRunError *
        TooManyFaultsError
        YieldedRunError
        OverdueJobError *
"""

from __future__ import annotations

from typing import ClassVar


class KpipeError(RuntimeError):
    """The root of the provider's own errors."""

    retriable: ClassVar[bool] = False


class ConnectionSettingsError(KpipeError):
    """An Airflow connection does not describe a Kafka cluster."""


class KafkaUnavailableError(KpipeError):
    """The cluster does not answer."""

    retriable: ClassVar[bool] = True


class UnreachableError(KafkaUnavailableError):
    """No broker answers at a connection's addresses: an outage if the connection has worked before, else a mistake."""


class HeldUpError(KafkaUnavailableError):
    """An open transaction keeps a group from being read."""


class ForbiddenError(KpipeError):
    """The connection's user may not use a topic, a group or a transactional id."""


class UnknownTopicError(KpipeError):
    """A topic of the pipeline is not on the cluster."""


class PlanError(KpipeError):
    """The wishes do not allow a plan."""


class StalePlanError(KpipeError):
    """The cluster has changed since the plan was made."""


class GroupInUseError(KpipeError):
    """A consumer group that only the checkpoint should move has live members."""

    retriable: ClassVar[bool] = True


class GroupMovedError(KpipeError):
    """Another client moved the committed offsets since the plan was made."""


class CommitError(KpipeError):
    """The broker did not commit the offsets of a checkpoint."""

    retriable: ClassVar[bool] = True


class IncompleteRunError(KpipeError):
    """Some partition was not read to the end of its range."""

    retriable: ClassVar[bool] = True


class TooManyFaultsError(KpipeError):
    """Too many of a run's records became dead letters or were skipped."""


class OverdueJobError(KpipeError):
    """A job did not end in time, and was killed."""

    retriable: ClassVar[bool] = True


class YieldedRunError(KpipeError):
    """Partitions were given up for good: to a newer run, or because the run's time was over."""
