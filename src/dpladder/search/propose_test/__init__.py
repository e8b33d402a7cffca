"""Candidates tested on models of disjoint parts (Ding & Wu 2022)."""
