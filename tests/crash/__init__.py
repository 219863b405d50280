"""Accidents: the service, its links and its servers fail in mid-flow, and every letter is followed."""
