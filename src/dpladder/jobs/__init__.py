"""What each rule of the workflow does, one module per rule: from a task to its files."""
