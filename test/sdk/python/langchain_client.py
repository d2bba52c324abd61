"""LangChain's Python client against a running gateway."""

import os

import openai
import tiktoken
import tiktoken_ext.openai_public as encodings
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from checks import BASE_URL, KEY, check, expect, expect_error, run_checks

# The table of the encoding is on disk; everything else of the tokenizer is its own.
_load_table = encodings.load_tiktoken_bpe
encodings.load_tiktoken_bpe = lambda _url, expected_hash=None: _load_table(
    os.environ["SLUICE_TOKEN_TABLE"], expected_hash
)


def chat_with(**fields):
    defaults = {"model": "chat-model", "api_key": KEY, "base_url": BASE_URL, "max_retries": 0}
    return ChatOpenAI(**{**defaults, **fields})


@tool
def get_weather(city: str) -> str:
    """Tells the weather"""
    return f"sunny in {city}"


@tool
def get_population(city: str) -> str:
    """Counts people"""
    return f"three people in {city}"


class Person(BaseModel):
    """A person"""

    name: str
    age: int


@check
def chat():
    """chat"""
    answer = chat_with().invoke("echo: Hello there")
    expect(answer.content, "Hello there")
    expect(answer.usage_metadata["output_tokens"], 2)
    expect(answer.response_metadata["finish_reason"], "stop")


@check
def stream():
    """a stream"""
    pieces = [chunk.content for chunk in chat_with().stream("echo: Hello there")]
    expect([piece for piece in pieces if piece], ["Hello", " there"])


@check
def stream_with_usage():
    """a stream with its usage"""
    counts = [
        chunk.usage_metadata["output_tokens"]
        for chunk in chat_with(stream_usage=True).stream("echo: Hello there")
        if chunk.usage_metadata
    ]
    expect(counts, [2])


def tools_over_two_turns(ask):
    messages = [HumanMessage("weather and population of Rome, please")]
    first = ask(messages)
    calls = [(call["name"], call["args"]) for call in first.tool_calls]
    expect(calls, [("get_weather", {"city": "Rome"}), ("get_population", {"city": "Rome"})])
    messages.append(first)
    for call in first.tool_calls:
        messages.append(ToolMessage("42", tool_call_id=call["id"]))
    second = ask(messages)
    expect(second.tool_calls, [])
    assert second.content


@check
def tools():
    """tools over two turns"""
    tools_over_two_turns(chat_with().bind_tools([get_weather, get_population]).invoke)


@check
def streamed_tools():
    """streamed tools over two turns"""
    model = chat_with().bind_tools([get_weather, get_population])

    def ask(messages):
        chunks = list(model.stream(messages))
        joined = chunks[0]
        for chunk in chunks[1:]:
            joined += chunk
        return joined

    tools_over_two_turns(ask)


@check
def forced_tool():
    """a forced tool"""
    model = chat_with().bind_tools([get_weather, get_population], tool_choice="get_population")
    expect([call["name"] for call in model.invoke("Hello").tool_calls], ["get_population"])


@check
def structured_output():
    """structured output by schema and by tool"""
    for method in ["json_schema", "function_calling"]:
        model = chat_with().with_structured_output(Person, method=method)
        assert isinstance(model.invoke("Describe Ada Lovelace."), Person)


def embeddings_with(**fields):
    defaults = {"model": "embedding-model", "api_key": KEY, "base_url": BASE_URL, "max_retries": 0}
    return OpenAIEmbeddings(**{**defaults, **fields})


@check
def embeddings_of_tokens():
    """embeddings by default, sent as token ids"""
    one = embeddings_with().embed_query("Hello world")
    many = embeddings_with().embed_documents(["Hello world", "something else"])
    expect((len(one), len(many)), (1024, 2))
    assert max(abs(a - b) for a, b in zip(one, many[0])) < 1e-6
    assert one != many[1]


@check
def embeddings_of_tokens_for_text_upstreams():
    """token ids reach an upstream for text as the text they stand for"""
    by_tokens = embeddings_with(model="text-embedding-model").embed_query("Hello world")
    by_text = embeddings_with(check_embedding_ctx_length=False).embed_query("Hello world")
    assert max(abs(a - b) for a, b in zip(by_tokens, by_text)) < 1e-6
    expect(tiktoken.get_encoding("cl100k_base").encode("Hello world"), [9906, 1917])


@check
def embeddings_of_texts():
    """embeddings of texts, with dimensions"""
    vectors = embeddings_with(check_embedding_ctx_length=False, dimensions=256).embed_documents(
        ["one", "two", "three"]
    )
    expect([len(vector) for vector in vectors], [256, 256, 256])


@check
def errors():
    """errors of key, model, field and upstream"""
    for fields, error_class, status, code, param in [
        ({"api_key": "sk-wrong"}, openai.AuthenticationError, 401, "invalid_api_key", None),
        ({"model": "none"}, openai.BadRequestError, 400, "invalid_model", "model"),
        ({"n": 200}, openai.BadRequestError, 400, "integer_above_max_value", "n"),
        ({"model": "overloaded-model"}, openai.InternalServerError, 503, "model_unavailable", None),
    ]:
        expect_error(
            lambda: chat_with(**fields).invoke("Hello"),
            error_class,
            status_code=status,
            code=code,
            param=param,
        )


@check
def context_overflow():
    """a context that is too long"""
    try:
        chat_with(model="small-model").invoke("word " * 100)
    except openai.BadRequestError as error:
        expect((error.code, error.param), ("context_length_exceeded", "messages"))
    else:
        raise AssertionError("no error was raised")


@check
def rate_limit():
    """an exhausted plan"""
    model = chat_with(api_key=os.environ["SLUICE_FEW_REQUESTS_KEY"])
    model.invoke("echo: 1")
    model.invoke("echo: 2")
    expect_error(
        lambda: model.invoke("echo: 3"),
        openai.RateLimitError,
        status_code=429,
        code="rate_limit_exceeded",
        type="requests",
    )


@check
def error_in_stream():
    """an error in the middle of a stream"""
    pieces = []

    def read():
        for chunk in chat_with(model="breaking-model").stream("Hello"):
            pieces.append(chunk.content)

    expect_error(read, openai.APIError, code="model_unavailable")
    expect("".join(pieces), "Hello")


run_checks()
