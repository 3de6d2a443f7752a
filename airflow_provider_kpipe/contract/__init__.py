"""The contract between Airflow and Spark. Standard library only: it is shipped to the executors.

Its rooms, each of which may import those before it:

- `offsets`: the wishes for offsets, the ranges that they become, and what is completed of a range
- `pipeline`: a pipeline as a user declares it
- `faults`: the errors that records could not pass
- `dead_letters`: dead letters as messages, in every dialect
- `progress`: what runs and checkpoints have stored, and what follows from it
- `redrive`: the choice of dead letters, and the ledger of those that went back

Beside them, `plan.py` has the plan of a run, `job.py` and `job_file.py` what a job is handed, `kafka_names.py` the
names of groups and transactional ids, and `documents.py` what all stored documents have in common.

A stored document outlives the version that wrote it, so it changes by these rules:

- A new field has a default, which means what the absence of the field has meant.
- A reader ignores a field that it does not know; a document that is stored again is stored without it.
- A field without a default stays, under its name and with its meaning.
- Any other change, and a field that an older reader must not ignore, raise `SCHEMA_VERSION`: a version that reads
  another one refuses the document by name.
"""
