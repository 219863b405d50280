"""The edge: what it reads, writes and sends."""
