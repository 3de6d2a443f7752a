"""Hand-over of records to the producer, the broker's acknowledgements, and offsets stored with the records."""
