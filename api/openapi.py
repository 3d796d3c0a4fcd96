"""OpenAPI document. It extends the framework's document with the request bodies that this server reads itself, and with
problem details for every error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from .problems import MEDIA_TYPE, ProblemDetails

REF = "#/components/schemas/{model}"
Json = dict[str, Any]

ERRORS: dict[str, str] = {
    "401": "The token is missing or unknown.",
    "403": "The token does not allow this request, or not for this tenant or user.",
    "431": "The address and the headers have too many bytes.",
    "422": "A parameter or the body is invalid; `errors` names the fields.",
    "429": "The token or its tenant has reached a limit: try again after Retry-After.",
    "500": "The server failed; its log has the error.",
    "503": "The server is busy, or a service behind it does not answer: try again after Retry-After.",
}
BODY_ERRORS: dict[str, str] = {
    "413": "The body, or a turn, has too many bytes.",
    "415": "The Content-Type is not application/json.",
}
NO_CONTROL_CHARACTERS = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"


def body_of(model: type[BaseModel], *, without: tuple[str, ...] = (), many: int = 0) -> Json:
    """Describe the request body of a route that reads its own body.

    Args:
        model: model of one object.
        without: required fields that the server can fill in.
        many: maximum length of a list of objects; 0 if the route accepts no list.
    """
    schema = model.model_json_schema(ref_template=REF)
    schema["required"] = [name for name in schema.get("required", ()) if name not in without]
    name = model.__name__
    one: Json = {"$ref": REF.format(model=name)}
    several: Json = {"type": "array", "items": one, "minItems": 1, "maxItems": many}
    content = {"schema": {"oneOf": [one, several]} if many else one, "$defs": {name: schema}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def document(app: FastAPI) -> Json:
    """Build the OpenAPI 3.1 document."""
    made = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", description=app.description, routes=app.routes
    )
    schemas: Json = made.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = ProblemDetails.model_json_schema(ref_template=REF, mode="serialization")
    schemas |= problem.pop("$defs", {})
    schemas[ProblemDetails.__name__] = problem
    _open_answers(schemas)
    for operation in _operations(made):
        for parameter in operation.get("parameters", ()):
            _without_null(parameter["schema"])
        for content in operation.get("requestBody", {}).get("content", {}).values():
            for name, schema in content.pop("$defs", {}).items():
                schemas |= schema.pop("$defs", {})
                schemas[name] = schema
        _add_errors(operation)
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name.endswith("_id"):
                _exclude_control_characters(field)
    return made


def _open_answers(schemas: Json) -> None:
    """Allow additional fields in answers, because a later minor version may add fields.

    Call it before request bodies are added: `schemas` must contain only answers.
    """
    for schema in schemas.values():
        if schema.get("additionalProperties") is False:
            schema["additionalProperties"] = True


def _operations(made: Json) -> Iterator[Json]:
    for path in made["paths"].values():
        yield from path.values()


def _without_null(schema: Json) -> None:
    """Remove null from a parameter's schema: a parameter can be omitted, but cannot be null."""
    some = [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]
    if len(some) == 1:
        schema |= some[0]
    elif some:
        schema["anyOf"] = some


def _add_errors(operation: Json) -> None:
    if "security" not in operation:
        return
    errors = ERRORS | (BODY_ERRORS if "requestBody" in operation else {})
    responses: Json = operation["responses"]
    described = {status: each["description"] for status, each in responses.items() if not status.startswith("2")}
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model=ProblemDetails.__name__)}}}
    for status, description in sorted((described | errors).items()):
        responses[status] = {"description": description, "content": content}
    retry = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
    responses["503"] |= {"headers": retry}
    challenge = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    responses["401"] |= {"headers": challenge}


def _exclude_control_characters(field: Json) -> None:
    """Exclude control characters from an id that callers choose, by a pattern. The JSON Schemas of records have no such
    pattern, because the code checks these ids."""
    for each in (field, *field.get("anyOf", ())):
        if each.get("type") == "string" and each.get("maxLength") == 128:
            each["pattern"] = NO_CONTROL_CHARACTERS
