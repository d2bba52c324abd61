"""The official client's responses, and Pydantic AI with its default for OpenAI."""

import asyncio

from openai import BadRequestError, NotFoundError, OpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from checks import BASE_URL, KEY, check, expect, expect_error, run_checks

client = OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
MODEL = "chat-model"


class City(BaseModel):
    city: str


WEATHER = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


@check
def text():
    """a text"""
    response = client.responses.create(model=MODEL, input="echo: Hello there")
    expect((response.output_text, response.status), ("Hello there", "completed"))


@check
def events():
    """events"""
    stream = client.responses.create(model=MODEL, input="echo: Hello there", stream=True)
    types = [event.type for event in stream]
    expect((types[0], types[-1]), ("response.created", "response.completed"))


@check
def helper():
    """the helper for streams"""
    with client.responses.stream(model=MODEL, input="echo: Hello there") as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        expect("".join(pieces), "Hello there")
        expect(stream.get_final_response().output_text, "Hello there")


@check
def helper_with_call():
    """a call through the helper for streams"""
    with client.responses.stream(
        model=MODEL, input="The weather in Paris?", tools=[WEATHER], tool_choice="required"
    ) as stream:
        stream.until_done()
        calls = [item for item in stream.get_final_response().output if item.type == "function_call"]
        expect([call.name for call in calls], ["weather"])


@check
def parse():
    """an answer of a schema"""
    response = client.responses.parse(model=MODEL, input="Name a city.", text_format=City)
    assert response.output_parsed is not None and response.output_parsed.city


@check
def count():
    """a count of tokens"""
    assert client.responses.input_tokens.count(model=MODEL, input="Hello").input_tokens > 0


@check
def errors():
    """errors"""
    expect_error(
        lambda: client.responses.create(model=MODEL, input="x", previous_response_id="resp_1"),
        BadRequestError,
        code="previous_response_not_found",
    )
    expect_error(lambda: client.responses.retrieve("resp_1"), NotFoundError)


def agent(**options):
    provider = OpenAIProvider(base_url=BASE_URL, api_key=KEY)
    return Agent(OpenAIResponsesModel(MODEL, provider=provider), **options)


def worker():
    made = agent(instructions="Be brief.")
    made.tool_plain(lambda a: "next: two", name="one", description="Tool one.")
    made.tool_plain(lambda a: "done", name="two", description="Tool two.")
    return made


def tools_of(result):
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part.tool_name for part in parts if part.part_kind == "tool-call"]


@check
def pydantic_loop():
    """Pydantic AI's loop with tools"""
    result = worker().run_sync("Use one.")
    expect(tools_of(result), ["one", "two"])


@check
def pydantic_stream():
    """Pydantic AI's loop with tools, streamed"""

    async def stream():
        async with worker().run_stream("Use one.") as result:
            output = await result.get_output()
            return output, tools_of(result)

    output, tools = asyncio.run(stream())
    expect((bool(output), tools), (True, ["one", "two"]))


@check
def pydantic_output():
    """Pydantic AI's answer of a schema"""
    assert agent(output_type=City).run_sync("Name a city.").output.city


run_checks()
