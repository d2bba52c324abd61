"""The official Python client of Anthropic's API."""

import os

import anthropic
from anthropic import Anthropic, beta_tool

from checks import BASE_URL, KEY, check, expect, expect_error, run_checks

# The client adds `/v1` itself.
ROOT = BASE_URL.removesuffix("/v1")
MODEL = "chat-model"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"name": "get_weather", "description": "Tells the weather", "input_schema": SCHEMA},
    {"name": "ring", "input_schema": {"type": "object"}},
]


def client_with(key):
    return Anthropic(base_url=ROOT, api_key=key, max_retries=0)


client = client_with(KEY)


def say(text, **more):
    messages = [{"role": "user", "content": f"echo: {text}"}]
    return {"model": MODEL, "max_tokens": 200, "messages": messages, **more}


@check
def message():
    """a message"""
    answer = client.messages.create(**say("Hello there"))
    expect(answer.content[0].text, "Hello there")
    expect((answer.model, answer.stop_reason), (MODEL, "end_turn"))
    assert answer.usage.input_tokens > 0
    assert answer._request_id.startswith("req_")


@check
def helper():
    """the helper for streams"""
    with client.messages.stream(**say("Hello there")) as stream:
        expect("".join(stream.text_stream), "Hello there")
        expect(stream.get_final_message().stop_reason, "end_turn")


@check
def calls():
    """calls of tools in a stream"""
    for name, fields in (("get_weather", ["city"]), ("ring", [])):
        choice = {"type": "tool", "name": name}
        with client.messages.stream(**say("x"), tools=TOOLS, tool_choice=choice) as stream:
            [call] = stream.get_final_message().content
        expect((call.name, list(call.input)), (name, fields))


@check
def tool_runner():
    """the tool runner"""
    cities = []

    @beta_tool
    def get_weather(city: str) -> str:
        """Tells the weather.

        Args:
            city: Name of the city.
        """
        cities.append(city)
        return f"sunny in {city}"

    messages = [{"role": "user", "content": "How is the weather in Oslo?"}]
    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=400, messages=messages, tools=[get_weather], max_iterations=4
    )
    answers = list(runner)
    expect((len(answers), len(cities)), (2, 1))
    assert "sunny in" in answers[-1].content[0].text


@check
def count():
    """a count of tokens"""
    counted = client.messages.count_tokens(model=MODEL, messages=say("Hello")["messages"])
    assert counted.input_tokens > 3


@check
def models():
    """the list of models, page by page"""
    assert MODEL in [model.id for model in client.models.list(limit=1)]


@check
def errors():
    """errors by their classes"""

    def create(own=client, **more):
        return lambda: own.messages.create(**{**say("x"), **more})

    expect_error(create(max_tokens=0), anthropic.BadRequestError, status_code=400)
    expect_error(create(model="none"), anthropic.NotFoundError, status_code=404)
    revoked = client_with(os.environ["SLUICE_REVOKED_KEY"])
    expect_error(create(revoked), anthropic.AuthenticationError, status_code=401)
    expect_error(create(model="overloaded-model"), anthropic.APIStatusError, status_code=529)
    long = [{"role": "user", "content": "x" * 30_000_000}]
    expect_error(create(messages=long), anthropic.APIStatusError, status_code=413)
    few = client_with(os.environ["SLUICE_FEW_REQUESTS_KEY"])
    many = lambda: [create(few)() for _ in range(10)]
    expect_error(many, anthropic.RateLimitError, status_code=429)


run_checks()
