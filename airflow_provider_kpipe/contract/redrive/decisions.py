"""The outcome of each dead letter, decided so that each record goes back once."""

from __future__ import annotations

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.redrive.ledger import Place, Redriven, SourceRecord
from airflow_provider_kpipe.contract.redrive.redrive import Outcome, Redrive

_SETTLES: frozenset[Outcome] = frozenset({"redriven", "parked", "already_redriven"})


class Decisions:
    """Decisions about one letter after another, from the ledger and from the earlier decisions.

    Of the letters of one record, the one that the ledger names counts, or else the first one that was decided.
    A second decision about a letter, as after a chunk that failed, has the same outcome.
    """

    def __init__(self, redrive: Redrive, redriven: Redriven) -> None:
        self._redrive = redrive
        self._redriven = redriven
        self._letters = dict(redriven.letters)
        self._rivals: dict[bytes, Place] = {}

    def outcome_of(self, letter: DeadLetter | None, place: Place, written_at: int) -> Outcome:
        """Return the outcome of a letter, or of a message that is none; `written_at` is the message's timestamp."""
        outcome = self._redrive.outcome_of(letter, written_at, place in self._redriven)
        if letter is None or outcome not in _SETTLES:
            return outcome
        settled_by = self._settled_by(SourceRecord.of(letter).digest, place)
        if settled_by == place or outcome == "already_redriven" or self._redrive.each_letter:
            return outcome
        return "duplicate"

    def note_rival(self, letter: DeadLetter | None, place: Place, written_at: int) -> None:
        """Note a letter that another worker decides about now: of two letters, the one in the lower place goes back."""
        if letter is not None and self._redrive.outcome_of(letter, written_at, place in self._redriven) in _SETTLES:
            digest = SourceRecord.of(letter).digest
            self._rivals[digest] = min(place, self._rivals.get(digest, place))

    def _settled_by(self, digest: bytes, place: Place) -> Place:
        rival = self._rivals.get(digest)
        if rival is not None and rival < place:
            return self._letters.get(digest, rival)
        return self._letters.setdefault(digest, place)
