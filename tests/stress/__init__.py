"""Kills, forks, crowds, hostile disks and Ctrl-C: an answer or one clear error each time, and never a hang.

In: how many of each. Out: figures. `make stress` runs `campaign.py`; the suite runs a few of each
(`test_stress.py`).
"""
