"""Model weights on this machine: finding, checking and loading them."""
