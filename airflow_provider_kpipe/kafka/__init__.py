"""Clients of Kafka on Airflow's side: they ask, bound and name errors, and decide nothing."""
