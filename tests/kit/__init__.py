"""What tests of the running service share: its process, a foreign team's queues, a clean broker."""
