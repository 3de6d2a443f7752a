"""Engine on the executors: a partition worker for the ranges of each writer. It never imports Airflow."""
