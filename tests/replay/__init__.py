"""Replays, whole: the service, its ledger, and foreign consumers."""
