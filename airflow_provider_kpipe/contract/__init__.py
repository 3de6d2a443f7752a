"""The contract between Airflow and Spark. Standard library only: it is shipped to the executors."""
