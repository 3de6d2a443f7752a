"""Seeds that have found something. What they find is fixed, and stays so."""

from __future__ import annotations

TOLD_OF = "what pieces had completed above a group that stayed where it was, was forgotten with the progress of its run"

CLEARED = "what pieces had completed was written again by their run, cleared after its progress had expired"
ANNOUNCED = "a transaction that its worker had only announced when it died was taken for one that readers wait for"
RETAINED = "a log whose start had moved beyond an election was taken for one that an unclean election had cut"
ANOTHER_CUT = "the second piece of a newer run was taken for that of an older one, which had been cut elsewhere"
LATE = "progress was not known to go back with a commit of the same worker that came late, in at least once"
NOT_REDONE = "a chunk was missed in the counts that was written twice, by a run that died before it stored"
OLDER_LEADER = "a log was taken for one that an unclean election had cut, where an older plan had stored a later end"
STALE_CLAIM = "the claim of a later attempt was not known to take progress back, in at least once"
TOLD_OF_ANOTHER = "progress was let expire that no checkpoint had told of: another run had come to that offset before"

SEEDS: dict[int, str] = {
    902209: TOLD_OF,
    904357: TOLD_OF,
    911298: TOLD_OF,
    4316: CLEARED,
    3625: ANNOUNCED,
    58317: RETAINED,
    106283: TOLD_OF_ANOTHER,
    5012207: ANOTHER_CUT,
    7027019: NOT_REDONE,
    7058610: LATE,
    8274322: OLDER_LEADER,
    30224631: STALE_CLAIM,
}
"""With what was wrong."""
