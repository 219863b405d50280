"""The Kafka lane, in the extra `[kafka]`: nothing outside of here imports a Kafka library."""
