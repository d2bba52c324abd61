"""The official Python client against a running gateway."""

import asyncio
import json
import os
import struct

import httpx
import openai
from pydantic import BaseModel

from checks import BASE_URL, KEY, UPSTREAM_KIND, check, expect, expect_error, run_checks


def client_with(key=KEY, **options):
    return openai.OpenAI(base_url=BASE_URL, api_key=key, **{"max_retries": 0, **options})


client = client_with()
MODEL = "chat-model"


def user(content):
    return {"role": "user", "content": content}


def ask(content, **fields):
    return client.chat.completions.create(**{"model": MODEL, "messages": [user(content)], **fields})


def function_tool(name, description):
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    function_tool("get_weather", "Tells the weather"),
    function_tool("get_population", "Counts people"),
]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


@check
def chat():
    """chat"""
    answer = ask("echo: Hello there")
    expect(answer.choices[0].message.content, "Hello there")
    expect(answer.choices[0].finish_reason, "stop")
    expect(answer.model, MODEL)
    expect(answer.usage.completion_tokens, 2)
    assert answer._request_id.startswith("req_")


@check
def several_choices():
    """several choices"""
    answer = ask("echo: Hi", n=2)
    expect([(c.index, c.message.content) for c in answer.choices], [(0, "Hi"), (1, "Hi")])


@check
def log_probabilities():
    """log probabilities"""
    if UPSTREAM_KIND != "openai":
        expect_error(
            lambda: ask("echo: Hello there", logprobs=True),
            openai.BadRequestError,
            code="unsupported_parameter",
            param="logprobs",
        )
        return
    answer = ask("echo: Hello there", logprobs=True, top_logprobs=2)
    expect([entry.token for entry in answer.choices[0].logprobs.content], ["Hello", " there"])


@check
def refusal():
    """a refusal"""
    message = ask("refuse: this").choices[0].message
    told, other = message.refusal, message.content
    if UPSTREAM_KIND != "openai":
        told, other = other, told
    expect(other, None)
    assert "can't help" in told


@check
def stream():
    """a stream"""
    text, finish = "", []
    for chunk in ask("echo: Hello there", stream=True):
        expect(chunk.usage, None)
        text += chunk.choices[0].delta.content or ""
        finish.append(chunk.choices[0].finish_reason)
    expect(text, "Hello there")
    expect([reason for reason in finish if reason], ["stop"])


@check
def stream_with_usage():
    """a stream with its usage"""
    chunks = list(ask("echo: Hello there", stream=True, stream_options={"include_usage": True}))
    expect(chunks[-1].choices, [])
    expect(chunks[-1].usage.completion_tokens, 2)
    expect([chunk.usage for chunk in chunks[:-1]], [None] * (len(chunks) - 1))


@check
def stream_helper():
    """a stream put together by the client's helper"""
    with client.chat.completions.stream(model=MODEL, messages=[user("echo: Hello there")]) as events:
        deltas = [event.delta for event in events if event.type == "content.delta"]
        message = events.get_final_completion().choices[0].message
    expect([delta for delta in deltas if delta], ["Hello", " there"])
    expect((message.role, message.content), ("assistant", "Hello there"))


@check
def async_stream():
    """a stream of the asynchronous client"""

    async def read():
        async with openai.AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0) as asynchronous:
            chunks = await asynchronous.chat.completions.create(
                model=MODEL, messages=[user("echo: Hello there")], stream=True
            )
            return [chunk.choices[0].delta.content async for chunk in chunks]

    expect("".join(piece or "" for piece in asyncio.run(read())), "Hello there")


def tools_over_two_turns(ask_message):
    messages = [user("weather and population of Rome, please")]
    first = ask_message(messages)
    expect(first.role, "assistant")
    expect(first.content, None)
    calls = [(call.type, call.function.name) for call in first.tool_calls]
    expect(calls, [("function", "get_weather"), ("function", "get_population")])
    expect(len({call.id for call in first.tool_calls}), 2)
    for call in first.tool_calls:
        expect(json.loads(call.function.arguments), {"city": "Rome"})
    messages.append(first)
    for call in first.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "42"})
    second = ask_message(messages)
    expect(second.tool_calls or [], [])
    assert second.content


@check
def tools():
    """tools over two turns"""

    def ask_message(messages):
        answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        return answer.choices[0].message

    tools_over_two_turns(ask_message)


@check
def streamed_tools():
    """streamed tools over two turns"""

    def ask_message(messages):
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as events:
            return events.get_final_completion().choices[0].message

    tools_over_two_turns(ask_message)


@check
def forced_tool():
    """a forced tool"""
    choice = {"type": "function", "function": {"name": "get_population"}}
    message = ask("Hello", tools=TOOLS, tool_choice=choice).choices[0].message
    expect([call.function.name for call in message.tool_calls], ["get_population"])


@check
def structured_output():
    """structured output, parsed by the client"""
    answer = client.chat.completions.parse(
        model=MODEL, messages=[user("Describe Ada Lovelace.")], response_format=Person
    )
    message = answer.choices[0].message
    expect(message.parsed, Person.model_validate_json(message.content))


@check
def image():
    """an image"""
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    answer = ask([{"type": "text", "text": "echo: A picture"}, part])
    expect(answer.choices[0].message.content, "A picture")


def embed(inputs, **fields):
    return client.embeddings.create(model="embedding-model", input=inputs, **fields).data


@check
def embeddings():
    """embeddings in the client's own encoding"""
    vector = embed("Hello")[0].embedding
    expect(len(vector), 1024)
    assert all(isinstance(value, float) for value in vector)
    plain = embed("Hello", encoding_format="float")[0].embedding
    expect(vector, list(struct.unpack("<1024f", struct.pack("<1024f", *plain))))


@check
def embeddings_of_several():
    """embeddings of several texts, with dimensions"""
    data = embed(["one", "two"], dimensions=256)
    expect([(item.index, len(item.embedding)) for item in data], [(0, 256), (1, 256)])
    expect(data[0].embedding, embed("one", dimensions=256)[0].embedding)


@check
def embeddings_of_tokens():
    """embeddings of token ids"""
    one = embed([9906, 1917])
    many = embed([[9906, 1917], [9906]])
    expect((len(one), len(many)), (1, 2))
    expect(many[0].embedding, one[0].embedding)


@check
def models():
    """models, listed and retrieved"""
    ids = [model.id for model in client.models.list()]
    assert {"chat-model", "embedding-model"} <= set(ids)
    expect(client.models.retrieve("chat-model").id, "chat-model")


REFUSED = {"type": "invalid_request_error", "param": None}


@check
def authentication_errors():
    """AuthenticationError 401 invalid_api_key"""
    for key in ["sk-wrong", os.environ["SLUICE_REVOKED_KEY"], os.environ["SLUICE_OTHER_KEY"]]:
        error = expect_error(
            client_with(key).models.list,
            openai.AuthenticationError,
            status_code=401,
            code="invalid_api_key",
            **REFUSED,
        )
        assert error.request_id.startswith("req_")


@check
def authentication_error_of_a_large_request():
    """AuthenticationError of a request of 20 MB, with its length and in chunks"""
    wrong = client_with("sk-wrong")
    expect_error(
        lambda: wrong.chat.completions.create(model=MODEL, messages=[user("x" * 20_000_000)]),
        openai.AuthenticationError,
        status_code=401,
    )
    pieces = (b"x" * 100_000 for _ in range(200))
    expect(httpx.post(f"{BASE_URL}/chat/completions", content=pieces).status_code, 401)


@check
def invalid_model():
    """BadRequestError 400 invalid_model"""
    expect_error(
        lambda: ask("Hi", model="no-such-model"),
        openai.BadRequestError,
        status_code=400,
        code="invalid_model",
        type="invalid_request_error",
        param="model",
    )


@check
def context_length():
    """BadRequestError 400 context_length_exceeded"""
    error = expect_error(
        lambda: ask("word " * 100, model="small-model"),
        openai.BadRequestError,
        code="context_length_exceeded",
        param="messages",
    )
    assert "maximum context length is 32 tokens" in error.message


@check
def field_errors():
    """BadRequestError 400 with the field at fault"""
    for fields, code in [
        ({"temperature": 3}, "decimal_above_max_value"),
        ({"n": 0}, "integer_below_min_value"),
        ({"max_tokens": "many"}, "invalid_type"),
        ({"messages": []}, "empty_array"),
    ]:
        expect_error(
            lambda: ask("Hi", **fields),
            openai.BadRequestError,
            code=code,
            param=next(iter(fields)),
        )


def exhaust(key, kind, **fields):
    limited = client_with(key)

    def call():
        return limited.chat.completions.create(
            model=MODEL, messages=[user("count: 1200")], **fields
        )

    call()
    if kind == "requests":
        call()
    error = expect_error(
        call,
        openai.RateLimitError,
        status_code=429,
        code="rate_limit_exceeded",
        type=kind,
        param=None,
    )
    headers = error.response.headers
    assert int(headers["retry-after"]) >= 1
    assert int(headers["retry-after-ms"]) >= 1
    expect(headers["x-should-retry"], "true")
    for unit in ["requests", "tokens"]:
        assert int(headers[f"x-ratelimit-limit-{unit}"]) > 0
        assert int(headers[f"x-ratelimit-remaining-{unit}"]) >= 0
        assert headers[f"x-ratelimit-reset-{unit}"].endswith("s")


@check
def rate_limit_on_requests():
    """RateLimitError 429 on requests"""
    exhaust(os.environ["SLUICE_FEW_REQUESTS_KEY"], "requests")


@check
def rate_limit_on_tokens():
    """RateLimitError 429 on tokens"""
    exhaust(os.environ["SLUICE_FEW_TOKENS_KEY"], "tokens", max_tokens=1200)


@check
def model_unavailable():
    """InternalServerError 503 model_unavailable"""
    for model in ["throttled-model", "overloaded-model", "failing-model", "unreachable-model"]:
        for streamed in [False, True]:
            error = expect_error(
                lambda: ask("Hi", model=model, stream=streamed),
                openai.InternalServerError,
                status_code=503,
                code="model_unavailable",
                type="server_error",
                param=None,
            )
            expect(error.response.headers["retry-after"], "2")


@check
def not_found():
    """NotFoundError 404"""
    expect_error(
        lambda: client.models.retrieve("some/model:8b"),
        openai.NotFoundError,
        status_code=404,
        code="model_not_found",
        param="model",
    )
    expect_error(
        lambda: client.completions.create(model=MODEL, prompt="Hi"),
        openai.NotFoundError,
        code="unknown_url",
    )


@check
def other_refusals():
    """APIStatusError 405, 413 and 415"""
    plain = {"Content-Type": "text/plain"}
    for function, status, code in [
        (lambda: client.models.delete("chat-model"), 405, None),
        (lambda: ask("x" * 1_100_000), 413, "request_too_large"),
        (lambda: ask("Hi", extra_headers=plain), 415, "unsupported_content_type"),
    ]:
        expect_error(
            function,
            openai.APIStatusError,
            status_code=status,
            code=code,
            type="invalid_request_error",
        )


@check
def error_in_stream():
    """APIError in the middle of a stream"""
    text = ""

    def read():
        nonlocal text
        for chunk in ask("Hi", model="breaking-model", stream=True):
            text += chunk.choices[0].delta.content or ""

    error = expect_error(read, openai.APIError, code="model_unavailable", type="server_error")
    expect(text, "Hello")
    assert "temporarily unavailable" in error.message


run_checks()
