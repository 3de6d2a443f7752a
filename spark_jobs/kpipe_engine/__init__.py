"""Runs on the executors: a partition worker for the ranges of each writer. It never imports Airflow.

Its rooms, each of which may import those before it:

- `reading`: ranges of the source topic, and the offsets that groups hold
- `assignment`: the ranges of a worker, who owns each, and what is stored of it
- `writing`: the producer, the chunks of its records, and the destination
- `faults`: records that cannot pass, and time limits of user code
- `processing`: the user's segments, one record at a time or several at once
- `batches`: the user's segments over Arrow batches
- `redrive`: dead letters that go back
- `supervision`: Spark tasks, and the processes in which workers run

The loop of a worker is `partition_worker.py`, with `chunk_filler.py` and `chunk_retry.py`; `wiring.py` builds a worker.
"""
