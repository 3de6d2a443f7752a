"""Finds the Spark application, packs the modules for executors, and submits without leaking secrets."""
