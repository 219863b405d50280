"""The office on one machine: its own RabbitMQ and PostgreSQL, installed, started and stopped."""
