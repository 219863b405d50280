"""Real servers for the tests: RabbitMQ and PostgreSQL of our own, and a network that can fail."""
