"""The only rooms that talk to Kafka from Airflow's side."""
