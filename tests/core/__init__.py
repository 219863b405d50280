"""The core, in tables: no broker, no clock, microseconds."""
