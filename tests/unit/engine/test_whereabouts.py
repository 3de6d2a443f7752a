from __future__ import annotations

import os

from kpipe_engine.whereabouts import At, Whereabouts

HERE = At(partition=3, first=10, after=25, read=12, in_chunk=40)


def test_they_say_where_a_worker_is() -> None:
    whereabouts = Whereabouts()
    assert (whereabouts.at, whereabouts.is_at_ease) == (None, False)
    whereabouts.enter(HERE)
    whereabouts.note_ease(True)
    assert (whereabouts.at, whereabouts.is_at_ease) == (HERE, True)
    whereabouts.leave()
    assert whereabouts.at is None


def test_with_a_new_block_nothing_is_known() -> None:
    whereabouts = Whereabouts()
    whereabouts.enter(HERE)
    whereabouts.note_ease(True)
    whereabouts.begin()
    assert (whereabouts.at, whereabouts.is_at_ease) == (None, False)


def test_what_another_process_has_written_is_there_when_it_is_gone() -> None:
    whereabouts = Whereabouts()
    before = whereabouts.stored_at
    child = os.fork()
    if not child:
        whereabouts.enter(HERE)
        whereabouts.note_stored()
        os._exit(0)
    os.waitpid(child, 0)
    assert whereabouts.at == HERE
    assert whereabouts.stored_at >= before > 0
