"""The AsyncAPI document: current, complete, and accepted by the official parser."""
