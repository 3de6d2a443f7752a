"""The Spark application, the packed modules for executors, and a submit that leaks no secrets."""
