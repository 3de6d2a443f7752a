"""A real Kafka, Airflow and Spark with the orders pipeline at work, for this repository; no user installs it."""
