"""Workers as Spark tasks, in processes of their own; when one has died, the next one starts."""
