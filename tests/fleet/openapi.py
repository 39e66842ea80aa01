"""Answers compared with openapi.json: as much of JSON Schema as that file uses, and no more."""

TYPES = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}
KNOWN = {"$ref", "type", "description", "enum", "properties", "required", "additionalProperties",
         "items", "minimum", "maximum", "minLength", "maxLength", "default", "format"}


def has_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Description:
    def __init__(self, document):
        self.document = document
        self.seen = set()  # (path, method, status)

    def resolve(self, node):
        while "$ref" in node:
            at = self.document
            for step in node["$ref"].lstrip("#/").split("/"):
                at = at[step]
            node = at
        return node

    def faults(self, value, schema, where="answer"):
        schema = self.resolve(schema)
        assert set(schema) <= KNOWN, "a word that this reader does not know: %s" % set(schema)
        names = schema.get("type", [])
        names = [names] if isinstance(names, str) else names
        if names and not any(has_type(value, name) for name in names):
            yield "%s: %r is no %s" % (where, value, " or ".join(names))
            return
        if "enum" in schema and value not in schema["enum"]:
            yield "%s: %r is none of %r" % (where, value, schema["enum"])
        yield from self.bounds(value, schema, where)
        if isinstance(value, dict):
            yield from self.members(value, schema, where)
        if isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self.faults(item, schema["items"], "%s[%d]" % (where, index))

    @staticmethod
    def bounds(value, schema, where):
        size = len(value) if isinstance(value, str) else value
        if isinstance(size, (int, float)) and not isinstance(size, bool):
            low = schema.get("minLength" if isinstance(value, str) else "minimum", size)
            high = schema.get("maxLength" if isinstance(value, str) else "maximum", size)
            if not low <= size <= high:
                yield "%s: %r is not from %r to %r" % (where, value, low, high)

    def members(self, value, schema, where):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield "%s: %s is missing" % (where, name)
        for name, member in value.items():
            if name in properties:
                yield from self.faults(member, properties[name], "%s.%s" % (where, name))
            elif schema.get("additionalProperties") is False:
                yield "%s: %s is not described" % (where, name)

    def path_of(self, path):
        """The path of the description that a request's path fits."""
        given = path.split("?")[0].split("/")
        for pattern in self.document["paths"]:
            wanted = pattern.split("/")
            if len(wanted) == len(given) and all(
                    one.startswith("{") and other or one == other
                    for one, other in zip(wanted, given)):
                return pattern
        return None

    def check(self, method, path, status, kind, body):
        """The faults of an answer whose body is JSON or text."""
        pattern = self.path_of(path)
        operation = self.document["paths"].get(pattern, {}).get(
            "get" if method == "HEAD" else method.lower())
        if operation is None:
            return [] if status in (404, 405, 400) else \
                ["%s %s: has status %d and is not described" % (method, path, status)]
        response = operation["responses"].get(str(status))
        if response is None:
            return ["%s %s: status %d is not described" % (method, pattern, status)]
        self.seen.add((pattern, method, status))
        content = self.resolve(response).get("content")
        if method == "HEAD" or content is None:
            return []
        if kind == "application/json" and kind not in content:
            return ["%s %s: %d is described as %s" % (method, pattern, status, list(content))]
        if kind != "application/json":
            return []
        return ["%s %s: %s" % (method, pattern, fault)
                for fault in self.faults(body, content[kind]["schema"])]
