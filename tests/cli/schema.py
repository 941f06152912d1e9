"""Checks a JSON document against the part of JSON Schema that tools/oncilla/schema uses."""

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}
KNOWN = {"$schema", "title", "description", "type", "const", "required", "properties", "items",
         "additionalProperties"}


def problems(value, schema, where="$"):
    """The violations, one string per position; empty when there are none."""
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{where}: the schema uses {unknown}, which this checker does not know"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{where}: is not {schema['const']!r}"]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[t](value) for t in types):
        return [f"{where}: {value!r} is no {' or '.join(types)}"]
    found = []
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where}: lacks {key}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in properties:
                found += problems(item, properties[key], f"{where}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: holds {key}, which the schema does not know")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += problems(item, schema["items"], f"{where}[{i}]")
    return found
