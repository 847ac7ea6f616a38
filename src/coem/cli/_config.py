"""Options in a TOML file."""

import json
from pathlib import Path
from typing import Any

import click

# Options that are something else than in the verbs that fit: a document, the name of a file.
OTHERWISE = {"explain": {"id", "words"}, "predict": {"out"}, "report": {"out"}}


class Numbers(click.ParamType):
    """Several whole numbers: ``5,10,20`` on the command line, or a list in a file."""

    name = "numbers"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> list[int]:
        """Return the numbers in order, each once."""
        try:
            parts = value.split(",") if isinstance(value, str) else value
            numbers = sorted({int(part) for part in parts})
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 5,10,20", parameter, context)
        if len(numbers) < 2 or numbers[0] < 2:
            self.fail("give at least two numbers, each 2 or more", parameter, context)
        return numbers


def read_config(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Take what a TOML file says as the defaults of this verb; the command line wins.

    Plain settings are for all verbs in which an option means the same, a table is for its verb.
    """
    if value is None:
        return
    import tomllib

    try:
        settings = tomllib.loads(Path(value).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.BadParameter(f"{value} is not TOML: {error}") from None
    verb = context.info_name or ""
    others = OTHERWISE.get(verb, set())
    plain = {
        key: item
        for key, item in settings.items()
        if not isinstance(item, dict) and key not in others
    }
    own = settings.get(verb, {})
    if not isinstance(own, dict):
        raise click.BadParameter(f"{value}: {verb} must be a table, [{verb}]")
    shown = [p for p in context.command.params if not getattr(p, "hidden", False)]
    known = {name for p in shown for name in _names(p)}
    _check_known(settings, value)
    for key in own:
        if key not in known:
            raise click.BadParameter(f"{value}: [{verb}] has no option {key!r}")
    chosen = {key: item for key, item in {**plain, **own}.items() if key in known}
    context.default_map = {
        **(context.default_map or {}),
        **_by_name(context.command, chosen, value),
    }


def _check_known(settings: dict[str, Any], source: str) -> None:
    """Refuse a table that is not named like a verb, and an option that no verb has."""
    from coem.cli._program import VERBS, main

    context = click.Context(main)
    verbs = [main.get_command(context, verb) for verb in VERBS]
    known = {name for verb in verbs if verb for p in verb.params for name in _names(p)}
    for key, item in settings.items():
        if isinstance(item, dict) and key not in VERBS:
            raise click.BadParameter(f"{source}: there is no verb {key!r} for [{key}]")
        if not isinstance(item, dict) and key not in known:
            raise click.BadParameter(f"{source}: no verb has an option {key!r}")


def _names(parameter: click.Parameter) -> list[str]:
    """Return what an option is called in a file: its long names without dashes."""
    return [name.lstrip("-") for name in parameter.opts if name.startswith("-")]


def _by_name(command: click.Command, chosen: dict[str, Any], source: str) -> dict[str, Any]:
    """Return settings under the names of the parameters."""
    homes = {name: p for p in command.params for name in _names(p)}
    found = {}
    for key, item in chosen.items():
        home = homes[key]
        wanted = _wanted(home, item)
        if wanted is not None:
            shown = json.dumps(item, default=str)
            raise click.BadParameter(f"{source}: {key} must be {wanted}, and is {shown}")
        found[str(home.name)] = [item] if home.multiple and isinstance(item, str) else item
    return found


def _wanted(home: click.Parameter, item: Any) -> str | None:
    """Return what a setting must be if it is something else, which click would bend into shape.

    Text is as good as on the command line, except for a flag.
    """
    if isinstance(home, click.Option) and home.is_flag:
        return None if isinstance(item, bool) else "true or false"
    if isinstance(item, str):
        return None
    if home.multiple:
        is_list = isinstance(item, list) and all(isinstance(part, str) for part in item)
        return None if is_list else 'text, or a list such as ["title", "body"]'
    if isinstance(home.type, Numbers):
        is_list = isinstance(item, list) and all(type(part) is int for part in item)
        return None if is_list else "a list of whole numbers such as [5, 10, 20]"
    if isinstance(home.type, click.types.IntParamType):
        return None if type(item) is int else "a whole number"
    if isinstance(home.type, click.types.FloatParamType):
        return None if type(item) in (int, float) else "a number"
    numbers = getattr(home.type, "numbers", ())  # of a type that also takes a word
    if numbers:
        return None if type(item) in numbers else "a number, or a word in quotes"
    return "text in quotes"
