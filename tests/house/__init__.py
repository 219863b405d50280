"""The house around the service: its servers, installer, pins and the one command that starts it."""
