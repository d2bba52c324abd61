"""Runs named checks and says of each whether it passed, one line a check."""

import os
import sys
import traceback

BASE_URL = os.environ["SLUICE_BASE_URL"]
KEY = os.environ["SLUICE_KEY"]
# What is behind the aliases: clients see it only where one provider lacks what another has.
UPSTREAM_KIND = os.environ["SLUICE_UPSTREAM_KIND"]

_checks = []


def check(function):
    """Marks a function without arguments as a check; its docstring is its name."""
    _checks.append(function)
    return function


def run_checks():
    failed = 0
    for function in _checks:
        name = (function.__doc__ or function.__name__).strip()
        try:
            function()
            print(f"ok: {name}", flush=True)
        except Exception:
            failed += 1
            print(f"failed: {name}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed or not _checks else 0)


def expect(actual, wanted):
    assert actual == wanted, f"expected {wanted!r}, got {actual!r}"


def expect_error(function, error_class, **fields):
    """Calls the function, which must raise an error of this class with these fields."""
    try:
        function()
    except error_class as error:
        for name, wanted in fields.items():
            expect(getattr(error, name), wanted)
        return error
    raise AssertionError(f"no {error_class.__name__} was raised")
