"""What runs on the executors: a partition worker for the ranges of each writer. Never imports Airflow."""
