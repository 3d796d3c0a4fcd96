"""Tests that loop over many cheap cases and report every failing case together.

`pytest.mark.parametrize` makes a test of each case. With hundreds of cases, the cost per test (collection, fixtures,
reports between processes) is greater than the checks, and `subtests` of pytest sends a report per case, too. `for_each`
has the arguments of `parametrize` and makes one test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test, or every test of a class, to run once per case and to fail with the names of all failing cases.

    The cases share the fixtures of the test. Use `parametrize` where a case changes a fixture.
    """
    arguments = names if isinstance(names, tuple) else (names,)
    taken = list(cases)
    assert taken, "a test without cases proves nothing"

    def decorate(test: Any) -> Any:
        if inspect.isclass(test):
            for name, member in list(vars(test).items()):
                if name.startswith("test_"):
                    setattr(test, name, decorate(member))
            return test
        assert not inspect.iscoroutinefunction(test), "an asynchronous test is parametrized"

        @wraps(test)
        def every_case(*args: Any, **fixtures: Any) -> None:
            failures: dict[str, Exception] = {}
            for number, case in enumerate(taken):
                values = case if isinstance(names, tuple) else (case,)
                try:
                    test(*args, **fixtures, **dict(zip(arguments, values, strict=True)))
                except Exception as error:  # noqa: BLE001 - raised below, with those of the other cases
                    failures[f"[{number}] {(ids or repr)(case)[:100]}"] = error
            if failures:
                lines = "".join(f"\n{name}: {type(error).__name__}: {error}" for name, error in failures.items())
                first = next(iter(failures.values()))
                raise AssertionError(f"{len(failures)} of {len(taken)} cases failed:{lines}") from first

        signature = inspect.signature(test)
        every_case.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[each for name, each in signature.parameters.items() if name not in arguments]
        )
        del every_case.__wrapped__  # pytest would take the arguments of the wrapped test for fixtures
        return every_case

    return decorate
