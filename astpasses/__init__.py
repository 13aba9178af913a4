"""Passes from program to program: frontend, transforms, optimize, schedule, emit."""
