"""From private records to feature caches: what each record is, where it belongs, and what a public
network sees in it."""
