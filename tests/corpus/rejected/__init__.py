"""One bad construct a module: `CASE = (function, args)`. The text of its refusal stands beside it, in `<module>.txt`.

Renew with `pytest tests/frontend/test_rejected.py --update-golden`, and read what changed.
"""
