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
    """Airflow connection that does not describe a Kafka cluster."""


class KafkaUnavailableError(KpipeError):
    """Lack of an answer from the cluster."""

    retriable: ClassVar[bool] = True


class UnreachableError(KafkaUnavailableError):
    """Lack of a broker at a connection's addresses: an outage if the connection has worked before, else a mistake."""


class HeldUpError(KafkaUnavailableError):
    """Open transaction that keeps a group from being read."""


class ForbiddenError(KpipeError):
    """Lack of a permission: the connection's user may not use a topic, a group or a transactional id."""


class UnknownTopicError(KpipeError):
    """Topic of the pipeline that is not on the cluster."""


class PlanError(KpipeError):
    """Wishes that do not allow a plan."""


class StalePlanError(KpipeError):
    """Plan that a change of the cluster has made stale."""


class GroupInUseError(KpipeError):
    """Live members in a consumer group that only the checkpoint should move."""

    retriable: ClassVar[bool] = True


class GroupMovedError(KpipeError):
    """Move of the committed offsets by another client since the plan was made."""


class CommitError(KpipeError):
    """Failure to commit the offsets of a checkpoint."""

    retriable: ClassVar[bool] = True


class IncompleteRunError(KpipeError):
    """Run that has not read some partition to the end of its range."""

    retriable: ClassVar[bool] = True


class TooManyFaultsError(KpipeError):
    """Run with too many records that became dead letters or were skipped."""


class OverdueJobError(KpipeError):
    """Job that did not end in time, and was killed."""

    retriable: ClassVar[bool] = True


class YieldedRunError(KpipeError):
    """Run that has given partitions up permanently: to a newer run, or because its time was over."""
