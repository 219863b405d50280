"""Dead Letter Office: one verdict for every failed delivery."""
