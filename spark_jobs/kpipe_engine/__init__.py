"""What runs on the executors: one partition worker per range of the plan. Never imports Airflow."""
