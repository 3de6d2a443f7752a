"""Airflow connections as Kafka settings."""
