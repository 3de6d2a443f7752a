"""Finds the Spark application, packs what executors need, and submits without leaking secrets."""
