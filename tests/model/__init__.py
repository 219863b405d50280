"""The forward step of a letter as a model: every state it can reach, with a fault at every step."""
