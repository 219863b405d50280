"""What the office needs around it on one machine or many."""
