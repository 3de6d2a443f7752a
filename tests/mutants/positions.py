"""Where a partition stands: planned, taken on, and committed."""

from __future__ import annotations

from tests.mutants.mutation import ENGINE, PACKAGE, Mutation

STANDING = f"{PACKAGE}/contract/progress/standing.py"
RESUMING = f"{PACKAGE}/contract/progress/resuming.py"
PUBLISHING = f"{PACKAGE}/contract/progress/publishing.py"
PLANNER = f"{PACKAGE}/planning/ranges.py"
COMMITTER = f"{PACKAGE}/checkpointing/committer.py"
DRAIN_TARGET = f"{PACKAGE}/contract/progress/drain_target.py"
OWNERSHIP = f"{ENGINE}/assignment/claiming.py"

MACHINE = "tests/unit/contract/test_standing_machine.py"
PURE = "tests/unit/contract/progress/test_standing.py"
RESUMED = "tests/unit/contract/progress/test_resuming.py"
PUBLISHED = "tests/unit/contract/progress/test_publishing.py"
PLANNED = "tests/unit/planning/test_ranges.py"
COMMITTED = "tests/broker/test_committer.py"
TAKEN_ON = "tests/broker/test_ownership.py"
IN_PIECES = "tests/broker/test_pieces.py"

MUTATIONS = (
    # Planned
    Mutation(
        "planner: a big partition starves a small one",
        PLANNER,
        "shares[name] = min(amount, left // (len(wanted) - rank))",
        "shares[name] = min(amount, left)",
        PLANNED,
    ),
    Mutation(
        "planner: what the log no longer holds takes a share of the cap",
        PLANNER,
        "readable = {each: min(max(start, snapshot.earliest[each]), ends[each]) for each, start in starts.items()}",
        "readable = dict(starts)",
        PLANNED,
    ),
    Mutation(
        "planner: what came to a partition before its first plan is passed over",
        PLANNER,
        'if otherwise == "latest" and not is_added else',
        'if otherwise == "latest" else',
        PLANNED,
    ),
    Mutation(
        "planner: a moment may lie beyond the end that was seen",
        PLANNER,
        "return min(snapshot.at[timestamp_ms][partition], snapshot.latest[partition])",
        "return snapshot.at[timestamp_ms][partition]",
        PLANNED,
    ),
    Mutation(
        "planner: a start below the log is taken",
        PLANNER,
        "if isinstance(wishes.start, Explicit) and start < first:",
        "if isinstance(wishes.start, Explicit) and start < 0:",
        PLANNED,
    ),
    Mutation(
        "planner: an end above the log is taken",
        PLANNER,
        "if isinstance(wishes.end, Explicit) and end > after_last:",
        "if isinstance(wishes.end, Explicit) and end > 2**63:",
        PLANNED,
    ),
    Mutation(
        "planner: a group above the log is believed",
        PLANNER,
        "if isinstance(wishes.start, Committed) and start > after_last:",
        "if isinstance(wishes.start, Committed) and start > 2**63:",
        PLANNED,
    ),
    Mutation(
        "planner: a backfill passes over what the group's runs have done",
        PLANNER,
        "done=standings[partition].done if wishes.continues_group else (),",
        "done=standings[partition].done,",
        PLANNED,
    ),
    # Where a partition stands
    Mutation(
        "standing: what was stored before a reset counts",
        STANDING,
        "if self.stored and self.stored.progress.is_in(self.topic_id, self.origin) else None",
        "if self.stored else None",
        PURE,
    ),
    Mutation(
        "standing: a topic that was re-created is the one of the mark",
        STANDING,
        "return mark if mark and mark.topic_id == self.topic_id else None",
        "return mark",
        PURE,
    ),
    Mutation(
        "standing: what a run has stored without a checkpoint is read again",
        STANDING,
        "        completed.add(start, current.offset)\n",
        "",
        PURE,
    ),
    Mutation(
        "standing: what pieces have done is read again",
        STANDING,
        "        _add(completed, (*current.pieces, *current.progress.done))\n",
        "",
        PURE,
    ),
    Mutation(
        "standing: a reset to the same offset is no reset",
        STANDING,
        "return Origin(published.origin.era + 1 if published else 1, base)",
        "return Origin(published.origin.era if published else 1, base)",
        PURE,
    ),
    Mutation(
        "take on: a newer run is not heeded",
        RESUMING,
        "if found.progress.lease > lease:",
        "if found.progress.lease < lease:",
        RESUMED,
    ),
    Mutation(
        "take on: what was stored before a reset is gone on from",
        RESUMING,
        "    if found.progress.origin != planned.origin:\n        return _from_group(planned, reached)\n",
        "",
        RESUMED,
    ),
    Mutation(
        "take on: a run that was done is done once more when its progress has expired",
        RESUMING,
        "    next_offset = _at_least(planned.start, planned, reached)\n",
        "    next_offset = planned.start\n",
        RESUMED,
    ),
    Mutation(
        "take on: what pieces had done is done once more when the progress has expired",
        RESUMING,
        "next_offset=next_offset, done=_beyond(reached))",
        "next_offset=next_offset)",
        "tests/broker/test_standing.py -k done_whose_progress_has_expired",
    ),
    Mutation(
        "take on: counts are told again that a checkpoint has told of in between",
        "spark_jobs/kpipe_engine/assignment/claiming.py",
        "if self._is_checkpointed(state) or self._may_be_reported(state, found):",
        "if self._is_checkpointed(state):",
        "tests/broker/test_counts.py -k told_of_in_between",
    ),
    Mutation(
        "take on: a run that was done is done once more where the group was reset since",
        f"{PACKAGE}/kafka/positions.py",
        "groups = (plan.working_group, published_group_of(plan.working_group))",
        "groups = (plan.working_group,)",
        "tests/broker/test_standing.py -k reset_the_group_since",
    ),
    Mutation(
        "attempt: a run from before a reset goes on once the group was reset again",
        RESUMING,
        "return any(mark.number > plan.number and mark.origin != planned.origin for mark in marks)",
        "return False",
        "tests/unit/contract/test_standing_machine.py",
    ),
    Mutation(
        "attempt: what is forgotten is taken for what was never begun",
        f"{PACKAGE}/running/attempts.py",
        "        _check_remembered(positions, plan, further)\n",
        "",
        "tests/broker/test_standing.py -k everything_is_forgotten",
    ),
    Mutation(
        "attempt: a run of which all is known is refused as forgotten",
        f"{PACKAGE}/running/attempts.py",
        "    if unknown:\n",
        "    if slots:\n",
        "tests/broker/test_standing.py -k number_alone",
    ),
    Mutation(
        "attempt: of a partition in pieces, the first piece stands for all",
        RESUMING,
        "and any(planned.partition not in stored.get(piece.slot, ())",
        "and all(planned.partition not in stored.get(piece.slot, ())",
        RESUMED,
    ),
    Mutation(
        "admission: a producer from which a cluster takes nothing though it is well is waited for",
        f"{ENGINE}/writing/backpressure.py",
        "if was_well and self._was_well:",
        "if False:",
        "tests/unit/engine/writing/test_backpressure.py",
    ),
    Mutation(
        "admission: a producer is given up as soon as a cluster has come back",
        f"{ENGINE}/writing/backpressure.py",
        "if was_well and self._was_well:",
        "if self._was_well:",
        "tests/unit/engine/writing/test_backpressure.py",
    ),
    Mutation(
        "resuming: where a newer run has cut its range says what is complete of ours",
        f"{PACKAGE}/contract/progress/resuming.py",
        "if planned.slot == 0 and found.progress.origin == planned.origin",
        "if found.progress.origin == planned.origin",
        RESUMED,
    ),
    Mutation(
        "transactional ids: a topic that grows gives its partitions other writers",
        f"{PACKAGE}/contract/plan.py",
        "return writer_id_of(self.working_group, self.topic, partition, slot)",
        "return writer_id_of(self.working_group, self.topic, partition + self.topic_partitions, slot)",
        "tests/broker/test_standing.py -k topic_that_grows",
    ),
    Mutation(
        "progress: a newer run that begins behind the range leaves it unfinished",
        RESUMING,
        "found.progress.start >= planned.end:",
        "found.progress.start > planned.end:",
        RESUMED,
    ),
    Mutation(
        "held offsets: what a plan was not told of a partition is taken for nothing",
        f"{PACKAGE}/kafka/held_offsets.py",
        "        if answer.error is not None:\n",
        "        if answer.offset is None:\n",
        "tests/unit/kafka/test_held_offsets.py",
    ),
    Mutation(
        "held offsets: what a worker was not told of a partition is taken for nothing",
        f"{ENGINE}/reading/held_offsets.py",
        "            if answer.error is not None:\n",
        "            if answer.offset is None:\n",
        "tests/unit/engine/reading/test_held_offsets.py",
    ),
    Mutation(
        "held offsets: a record that was listened to is not read again",
        f"{ENGINE}/reading/held_offsets.py",
        "if reads or failure",
        "if failure",
        "tests/unit/engine/reading/test_held_offsets.py",
    ),
    # Committed
    Mutation(
        "publishing: a group that somebody has put there gets no mark",
        PUBLISHING,
        "return _further(plan, progress, facts) or _in_its_place(plan, progress, facts)",
        "return _further(plan, progress, facts)",
        PUBLISHED,
    ),
    Mutation(
        "publishing: a group is taken back",
        PUBLISHING,
        "        if progress.next_offset < committed:\n            return None\n        target = _target",
        "        if progress.next_offset < committed:\n"
        "            return _target(plan, progress, planned.group_origin, facts)\n        target = _target",
        PUBLISHED,
    ),
    Mutation(
        "publishing: what is completed above a group that stays where it is is forgotten",
        PUBLISHING,
        "target.offset > committed or target.mark.beyond != known",
        "target.offset > committed",
        PUBLISHED,
    ),
    Mutation(
        "publishing: what is completed above the offset is forgotten",
        PUBLISHING,
        "(*progress.beyond, *before)",
        "before",
        PUBLISHED,
    ),
    Mutation(
        "publishing: what a newer run has is committed",
        PUBLISHING,
        'if progress.ended == "revoked":',
        'if progress.ended == "yielded":',
        PUBLISHED,
    ),
    Mutation(
        "publishing: a group that somebody has moved is moved on",
        PUBLISHING,
        "        raise MovedError(_moved(plan, progress, facts))\n    if committed is not None:\n",
        "    if committed is not None:\n",
        PUBLISHED,
    ),
    Mutation(
        "publishing: an empty partition of a new group stands nowhere",
        PUBLISHING,
        "or progress.beyond or progress.complete or followed):",
        "or progress.beyond or followed):",
        PUBLISHED,
    ),
    Mutation(
        "publishing: what pieces have completed is not told of in a new group",
        PUBLISHING,
        "or progress.beyond or progress.complete or followed):",
        "or progress.complete or followed):",
        "tests/broker/test_standing.py -k done_whose_progress_has_expired",
    ),
    Mutation(
        "publishing: a backfill passes over what the group has not read",
        PUBLISHING,
        "(committed is not None and committed < lowest)",
        "(committed is not None and committed < 0)",
        PUBLISHED,
    ),
    Mutation(
        "committer: live members are not looked for",
        COMMITTER,
        "    if members:\n",
        "    if members and not plan.group:\n",
        COMMITTED,
    ),
    Mutation(
        "committer: a quiet partition is forgotten by the broker",
        COMMITTER,
        "            offsets.append(_as_it_is(plan, each.range.partition, held))\n",
        "            pass\n",
        COMMITTED,
    ),
    Mutation(
        "committer: a reset is not noticed after the first checkpoint",
        COMMITTER,
        "    return _positions(plan, targets) + kept\n",
        "    return kept\n",
        "tests/broker/test_resets.py",
    ),
    Mutation(
        "committer: what it commits is not read back",
        COMMITTER,
        "if found != target.offset:",
        "if found is None:",
        COMMITTED,
    ),
    Mutation(
        "offset transaction: what was gathered is dropped",
        f"{PACKAGE}/transactions/offset_transaction.py",
        "within(ANSWER_SECONDS, self._producer.commit_transaction)",
        "within(ANSWER_SECONDS, self._producer.abort_transaction)",
        COMMITTED,
    ),
    Mutation(
        "sequence: a number is drawn twice",
        f"{PACKAGE}/transactions/sequence.py",
        "number = max(held.offset, above, 0) + 1",
        "number = max(held.offset, above, 1)",
        "tests/broker/test_sequence.py",
    ),
    Mutation(
        "sequence: one below what is known already is drawn",
        f"{PACKAGE}/transactions/sequence.py",
        "number = max(held.offset, above, 0) + 1",
        "number = max(held.offset, 0) + 1",
        "tests/broker/test_sequence.py",
    ),
    # Waited for
    Mutation(
        "gate: an offset of a topic that is gone opens it",
        DRAIN_TARGET,
        "        held = facts.held\n",
        "        held = facts.committed\n",
        f"{MACHINE} -k gone",
    ),
    Mutation(
        "gate: an earlier run of the same key opens it",
        DRAIN_TARGET,
        "held.mark.origin != Origin(self.number)",
        "held.mark.origin == Origin(0)",
        f"{MACHINE} -k gate",
    ),
    Mutation(
        "gate: it waits for partitions of which a published window holds nothing",
        DRAIN_TARGET,
        "each.end if len(each) or not (is_own and plan.is_published) else 0",
        "each.end",
        "tests/broker/test_standing.py -k window_is_published",
    ),
    Mutation(
        "gate: a plan of a topic that is gone is waited for",
        f"{PACKAGE}/checkpointing/draining.py",
        'if target.topic_id not in ("", topic.id):',
        "if not topic.id:",
        "tests/broker/test_standing.py -k opens_no_gate",
    ),
    Mutation(
        "planner: a window is published behind an offset of a topic that is gone",
        PLANNER,
        "held = self.facts[partition].held if",
        "held = self.facts[partition].committed if",
        f"{MACHINE} -k gone",
    ),
    # Taken on
    Mutation(
        "ownership: a claim is compared with its task",
        OWNERSHIP,
        "return claim is not None and claim.progress.lease.of_attempt == self._lease.of_attempt",
        "return claim is not None and claim.progress.lease == self._lease",
        IN_PIECES,
    ),
    Mutation(
        "ownership: pieces of a run before go on beside us",
        OWNERSHIP,
        "            if self._fence is not None:\n",
        "            if False:\n",
        IN_PIECES,
    ),
    Mutation(
        "ownership: nobody ever takes a partition over",
        OWNERSHIP,
        "return [at for at in partitions if self._is_lost(held[at], claims.get(at))]",
        "return []",
        TAKEN_ON,
    ),
    Mutation(
        "ownership: of a stop, what it stopped for is not stored",
        f"{ENGINE}/assignment/range_state.py",
        "return self.handled != self.stored or (self.phase in _ENDED and not self._end_is_stored)",
        "return self.handled != self.stored",
        "tests/unit/engine/assignment/test_range_state.py",
    ),
    Mutation(
        "lane: a chunk that is redone ends in front of the record that faults",
        f"{ENGINE}/assignment/range_state.py",
        "max(self.known_faults) + 1 - self.handled",
        "max(self.known_faults) - self.handled",
        "tests/unit/engine/assignment/test_range_state.py",
    ),
    Mutation(
        "plan: the partition alone says who its writer is, and pieces share it",
        f"{PACKAGE}/contract/kafka_names.py",
        'return f"{writer}/{slot}" if slot else writer',
        "return writer",
        "tests/unit/contract/test_plan.py",
    ),
    Mutation(
        "plan: two ranges of one partition",
        f"{PACKAGE}/contract/plan.py",
        "            if partition == following:\n",
        "            if partition is None:\n",
        "tests/unit/contract/test_plan.py",
    ),
    Mutation(
        "ranges: of what lies beyond its end, a plan knows the leader",
        f"{PACKAGE}/contract/offsets/ranges.py",
        "return self.leader_epoch if offset <= self.end else NO_EPOCH",
        "return self.leader_epoch",
        "tests/unit/contract/offsets/test_ranges.py",
    ),
    Mutation(
        "standing: of two epochs at an offset the earlier one counts",
        STANDING,
        "return max((each.leader_epoch for each in at_it or known), default=NO_EPOCH)",
        "return min((each.leader_epoch for each in at_it or known), default=NO_EPOCH)",
        "tests/unit/contract/progress/test_standing.py",
    ),
    Mutation(
        "committer: a group is taken beyond the log",
        COMMITTER,
        "            check_reached(positions, topic, plan, {at: target.offset for at, target in targets.items()})\n",
        "",
        "tests/broker/test_tampering.py",
    ),
)
