"""What a config asks for, before any job exists: the DAG in plain data, its code, its price."""
