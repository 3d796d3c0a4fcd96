"""The stages: recorder, observer, reflector, consolidation. Each is one consumer group and reads as its data flows."""


def _give_way() -> None:
    """Let the OpenAI Agents SDK have the name `agents`.

    Its package has this folder's name. Python that starts in the repository's root would find this folder first.
    """
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    from pathlib import Path

    root = Path(__file__).resolve().parents[1]
    spec = PathFinder.find_spec(__name__, [each for each in sys.path if Path(each or ".").resolve() != root])
    if spec is None or spec.loader is None:
        return  # it is not installed
    module = sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "agents":  # memstream's own code imports memstream.agents
    _give_way()
