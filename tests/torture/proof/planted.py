"""Each kind of anomaly, planted once in a kept folder: a checker that does not say it by its name is blind to it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.torture.proof import offsets, records
from tests.torture.proof.places import Plant

PLANTED: Mapping[Plant, str] = {
    records.lost_output: "lost",
    records.lost_output_of_a_copy: "lost",
    records.lost_output_at_least_once: "lost",
    records.lost_letter: "lost",
    records.doubled_output: "doubled",
    records.doubled_output_of_a_copy: "doubled",
    records.doubled_by_two_runs: "doubled",
    records.doubled_letter: "doubled",
    records.swapped_outputs: "reordered",
    records.aborted_record_read: "aborted_read",
    records.letter_with_other_bytes: "letter_mismatch",
    records.letter_with_other_header: "letter_mismatch",
    records.letter_without_header: "letter_mismatch",
    records.letter_of_another_offset: "letter_mismatch",
    records.letter_of_another_time: "letter_mismatch",
    records.filtered_record_came_out: "wrong_fate",
    records.good_record_became_a_letter: "wrong_fate",
    records.altered_output: "altered",
    records.output_without_header: "altered",
    records.output_of_nothing: "no_source",
    records.output_without_key: "no_source",
    records.output_of_an_unknown_run: "no_run",
    offsets.commit_ahead: "committed_beyond_stored",
    offsets.group_seen_beyond: "committed_beyond_stored",
    offsets.commit_back: "committed_backwards",
    offsets.commit_without_mark: "committed_backwards",
    offsets.group_gone: "committed_backwards",
    offsets.group_seen_back: "committed_backwards",
    offsets.counted_once_more: "counts",
    offsets.counted_as_another: "counts",
    offsets.backfill_not_counted: "counts",
    offsets.redrive_counted_wrong: "counts",
    offsets.green_and_incomplete: "incomplete_under_green",
    offsets.green_and_behind: "incomplete_under_green",
    offsets.green_and_untold: "incomplete_under_green",
    offsets.told_of_an_offset: "told_untrue",
    records.redriven_again: "redriven_twice",
    offsets.held_after_a_failure: "held_up",
    offsets.held_in_the_end: "held_up",
    offsets.not_drained: "not_drained",
    records.source_gone: "unreadable",
}
