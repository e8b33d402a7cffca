"""What the longer commands of `dpladder` do."""
