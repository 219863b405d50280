"""The wire: frames, connections, the intake and the relay, on a real broker."""
