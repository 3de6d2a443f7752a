"""Gates: sensors that wait until partitions are drained."""
