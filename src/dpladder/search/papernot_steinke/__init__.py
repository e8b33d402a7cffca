"""The best of a secret, random number of runs (Papernot & Steinke 2022)."""
