"""The stages: recorder, observer, reflector, consolidation, in the order of the data flow. Each is a consumer group."""


def _give_way() -> None:
    """Let the OpenAI Agents SDK use the import name `agents`.

    The SDK's package has the same name as this folder. A Python process started in the repository root finds this
    folder first.
    """
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    from pathlib import Path

    root = Path(__file__).resolve().parents[1]
    spec = PathFinder.find_spec(__name__, [each for each in sys.path if Path(each or ".").resolve() != root])
    if spec is None or spec.loader is None:
        return  # the SDK is not installed
    module = sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "agents":  # memstream imports this package as memstream.agents
    _give_way()
