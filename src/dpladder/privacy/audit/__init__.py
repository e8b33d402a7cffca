"""Does the noise that is really drawn earn the charge that the ledger makes?"""
