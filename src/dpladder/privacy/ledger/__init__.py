"""Everything ever spent, and on whom: home, its journals, the ledger of each lineage, the units
they know."""
