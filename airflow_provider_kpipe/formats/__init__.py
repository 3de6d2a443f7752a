"""Ready-made segments that read and write JSON, Avro, JSON Schema and Protobuf."""
