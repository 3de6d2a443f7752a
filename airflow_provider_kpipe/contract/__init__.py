"""What Airflow and Spark agree on. Standard library only: it is shipped to the executors."""
