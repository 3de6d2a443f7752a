"""Everything that tests of several folders share: pipelines under test, topics, brokers, jobs, processes."""
