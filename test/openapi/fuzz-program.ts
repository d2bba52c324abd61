/**
 * Sends what OpenAI's schema allows and what it does not, and prints what it found as JSON.
 * Arguments: schema, base URL, key, number of cases per operation, number per field.
 */
export const fuzzProgram = `
import base64, copy, json, struct, sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jsonschema_rs, requests, schemathesis, yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

schema_path, base_url, key, per_operation, per_field = sys.argv[1:]
with open(schema_path) as file:
    document = yaml.safe_load(file)
aliases = {
    "/chat/completions": "alpha-sonnet-4",
    "/embeddings": "embed-text-v2",
    "/models/{model}": "alpha-sonnet-4",
    "/responses": "alpha-sonnet-4",
    "/responses/input_tokens": "alpha-sonnet-4",
}


def with_null(schema):
    """OpenAI writes \`nullable\` of OpenAPI 3.0 into its 3.1."""
    if isinstance(schema, list):
        return [with_null(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: with_null(part) for name, part in schema.items() if name != "nullable"}
    return {"anyOf": [inner, {"type": "null"}]} if schema.get("nullable") is True else inner


components = with_null(document["components"])


def validator(name):
    root = {"$ref": f"#/components/schemas/{name}", "components": components}
    return jsonschema_rs.Draft202012Validator(root)


bodies = {
    "/chat/completions": "CreateChatCompletionResponse",
    "/embeddings": "CreateEmbeddingResponse",
    "/models": "ListModelsResponse",
    "/models/{model}": "Model",
    "/responses": "Response",
    "/responses/input_tokens": "TokenCountsResource",
}
answers = {path: validator(name) for path, name in bodies.items() if path in document["paths"]}
# The requests whose fields are tried one by one, with a plain conversation; and what streams have.
main, request, chunk, plain = (
    ("/responses", "CreateResponse", "ResponseStreamEvent", {"input": [{"role": "user", "content": "Some json"}]})
    if "/responses" in document["paths"]
    else ("/chat/completions", "CreateChatCompletionRequest", "CreateChatCompletionStreamResponse",
        {"messages": [{"role": "user", "content": "Some json"}]})
)
chunks = validator(chunk)
errors = validator("ErrorResponse")
violations, refusals, statuses = {}, {}, Counter()


def generate(path, method, is_valid, count, operation, fixed={}):
    """The same cases at every run: nothing depends on the answers."""
    cases = []
    mode = GenerationMode.POSITIVE if is_valid else GenerationMode.NEGATIVE

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )
    def collect(case):
        body = case.body if isinstance(case.body, dict) else None
        if body is not None and path in aliases and (is_valid or isinstance(body.get("model"), str)):
            body["model"] = aliases[path]
            body.update(fixed)
            if fixed and len(cases) % 4 == 0:
                body["stream"] = True
        if "{model}" in path and is_valid:
            case.path_parameters["model"] = aliases[path]
        cases.append((path, is_valid, case))

    collect()
    return cases


def with_field(name):
    """The schema of the request with one more required field, so that each of them is tried."""
    variant = copy.deepcopy(document)
    schemas = variant["components"]["schemas"]
    schemas[request] = {"allOf": [schemas[request], {"type": "object", "required": [name]}]}
    return schemathesis.openapi.from_dict(variant)[main]["POST"]


def fields_of(schema):
    schema = document["components"]["schemas"][schema["$ref"].split("/")[-1]] if "$ref" in schema else schema
    names = list(schema.get("properties", {}))
    return names + [name for part in schema.get("allOf", []) for name in fields_of(part)]


def send(item):
    path, is_valid, case = item
    session = requests.Session()
    session.headers["authorization"] = f"Bearer {key}"
    # Its own \`call\` reads only the first events of a stream.
    request = case.as_transport_kwargs(base_url=base_url)
    request["headers"] = {name: value for name, value in request["headers"].items() if name.lower() != "authorization"}
    return path, is_valid, case, session.request(**request, timeout=600)


def judge(path, is_valid, case, response):
    status = response.status_code
    statuses[f"{path} {'valid' if is_valid else 'invalid'} {status}"] += 1

    def violates(what):
        violations.setdefault(what, {"request": repr(case.body)[:500], "answer": response.text[-600:]})

    def check(known, value):
        for failure in known.iter_errors(value):
            place = [part for part in failure.instance_path if isinstance(part, str)]
            violates(f"{path} {status} {'.'.join(place)}: {failure.message[:200]}")

    kind = response.headers.get("content-type", "")
    response.encoding = "utf-8"
    if status not in (200, 400, 401, 403, 404, 405, 413, 415):
        return violates(f"{path} {status}")
    if kind.startswith("text/event-stream"):
        frames = [line[6:] for line in response.text.split("\\n") if line.startswith("data: ")]
        events = frames if path == "/responses" else frames[:-1]
        end = json.loads(frames[-1])["type"] if path == "/responses" else frames[-1]
        if end not in ("[DONE]", "response.completed", "response.incomplete"):
            return violates(f"{path}: a stream without an end")
        for frame in events:
            check(chunks, json.loads(frame))
        statuses[f"{path} streamed"] += 1
        return
    if not kind.startswith("application/json"):
        return violates(f"{path} {status} is {kind}")
    answer = response.json()
    if status == 200 and path == "/embeddings":
        # OpenAI's schema has lists only, its API and its clients have base64, too.
        for item in answer["data"]:
            if isinstance(item["embedding"], str):
                item["embedding"] = [number for (number,) in struct.iter_unpack("<f", base64.b64decode(item["embedding"]))]
    check(answers[path] if status == 200 else errors, answer)
    if status != 200 and is_valid:
        refusal = refusals.setdefault(answer["error"]["message"], {"count": 0, "request": repr(case.body)[:500]})
        refusal["count"] += 1


schema = schemathesis.openapi.from_dict(document)
cases = []
for path, operations in document["paths"].items():
    for method in (name.upper() for name in operations):
        count = 1 if method == "GET" else int(per_operation)
        cases += generate(path, method, True, count, schema[path][method])
        if method == "POST":
            cases += generate(path, method, False, count, schema[path][method])
# A plain conversation, so that most of them are served.
for name in fields_of(document["components"]["schemas"][request]):
    cases += generate(main, "POST", True, int(per_field), with_field(name), {**plain, "model": aliases[main]})
with ThreadPoolExecutor(48) as pool:
    for item in pool.map(send, cases):
        judge(*item)
print(json.dumps({"violations": violations, "refusals": refusals, "statuses": statuses}))
`;
