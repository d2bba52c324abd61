"""Agents' loops on models of Bedrock's: the official client's, and LangChain's."""

import json
import re

import openai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from checks import BASE_URL, KEY, check, expect, expect_error, run_checks

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)

# Models that take no stop sequence.
LLAMAS = ["beta-3-70b", "beta-3-405b", "llama-3-1", "llama-4"]
# Every chat alias of the demo whose model has tools, and a model of each other way to hold one to
# a schema: a field of the request, and a tool that takes the answer.
ABLE = [
    "alpha-sonnet-4",
    "alpha-haiku-3.5",
    "alpha-sonnet-3.5",
    "beta-3-70b",
    "beta-3-405b",
    "gamma-large",
    "claude-4-5",
    "claude-4",
    "nova",
    "gpt-oss",
]
WITHOUT_TOOLS = "gamma-8x7b"
# Families that nothing holds to a schema.
CANNOT_BE_HELD = ["llama-3-1", "llama-4", "cohere-command-r", "mixtral-8x7b", "claude-opus-5-5"]

STOP = "Observation:"
PEOPLE = {"Rome": 2_800_000, "Paris": 2_100_000}

# What the model writes in each turn if nobody stops it, told what its actions have brought.
TURNS = [
    lambda seen: (
        "Thought: I need both cities. Rome first.\nAction: population[Rome]\n"
        "Observation: 7\nThought: Seven.\nFinal Answer: 7"
    ),
    lambda seen: (
        f"Thought: Rome has {seen[0]}. Paris is next.\nAction: population[Paris]\n"
        "Observation: 8\nFinal Answer: 15"
    ),
    lambda seen: f"Thought: I know both.\nFinal Answer: {sum(seen)} people",
]

# Each turn as far as the model may say it.
WANTED_TURNS = [
    "Thought: I need both cities. Rome first.\nAction: population[Rome]\n",
    "Thought: Rome has 2800000. Paris is next.\nAction: population[Paris]\n",
    "Thought: I know both.\nFinal Answer: 4900000 people",
]


def run_react(say):
    """Runs actions and tells their outcome; `say` gives a text and the reason of its end."""
    messages, seen, texts, reasons = [], [], [], []
    for turn in TURNS:
        messages.append({"role": "user", "content": f"echo: {turn(seen)}"})
        text, reason = say(messages)
        texts.append(text)
        reasons.append(reason)
        answer = re.search(r"Final Answer: (.*)", text)
        if answer:
            expect(texts, WANTED_TURNS)
            expect(reasons, ["stop"] * 3)
            expect(answer[1], "4900000 people")
            return
        seen.append(PEOPLE[re.search(r"Action: population\[(\w+)\]", text)[1]])
        messages.append({"role": "assistant", "content": f"{text}{STOP} {seen[-1]}"})
    raise AssertionError("the agent came to no answer")


@check
def react():
    """thoughts, actions and observations"""
    for model in LLAMAS:

        def say(messages):
            answer = client.chat.completions.create(model=model, messages=messages, stop=[STOP])
            return answer.choices[0].message.content, answer.choices[0].finish_reason

        run_react(say)


@check
def streamed_react():
    """thoughts, actions and observations of a stream"""
    for model in LLAMAS:

        def say(messages):
            text, reason = "", None
            for chunk in client.chat.completions.create(
                model=model, messages=messages, stop=STOP, stream=True
            ):
                text += chunk.choices[0].delta.content or ""
                reason = chunk.choices[0].finish_reason or reason
            return text, reason

        run_react(say)


def chat_with(model):
    return ChatOpenAI(model=model, api_key=KEY, base_url=BASE_URL, max_retries=0)


def to_langchain(messages):
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    return [kinds[message["role"]](message["content"]) for message in messages]


@check
def langchain_react():
    """LangChain's thoughts, actions and observations"""
    for model in LLAMAS:
        stopping = chat_with(model).bind(stop=[STOP])

        def say(messages):
            answer = stopping.invoke(to_langchain(messages))
            return answer.content, answer.response_metadata["finish_reason"]

        def say_streamed(messages):
            text, reason = "", None
            for chunk in stopping.stream(to_langchain(messages)):
                text += chunk.content
                reason = chunk.response_metadata.get("finish_reason", reason)
            return text, reason

        run_react(say)
        run_react(say_streamed)


class GetWeather(BaseModel):
    """Tells the weather"""

    city: str


class Forecast(BaseModel):
    """A forecast"""

    city: str
    celsius: int
    advice: list[str]


QUESTION = {"role": "user", "content": "What is the weather in Rome?"}
WEATHER = openai.pydantic_function_tool(GetWeather, name="get_weather")


def answer_of(model, messages):
    answer = client.chat.completions.parse(
        model=model, messages=messages, tools=[WEATHER], response_format=Forecast
    )
    return answer.choices[0]


def streamed_answer_of(model, messages):
    with client.chat.completions.stream(
        model=model, messages=messages, tools=[WEATHER], response_format=Forecast
    ) as events:
        for _ in events:
            pass
        return events.get_final_completion().choices[0]


def run_structured(model, ask):
    messages = [QUESTION]
    first = ask(model, messages)
    expect(first.finish_reason, "tool_calls")
    [call] = first.message.tool_calls
    expect(call.function.parsed_arguments, GetWeather(city="Rome"))
    function = {"name": call.function.name, "arguments": call.function.arguments}
    messages = messages + [
        {
            "role": "assistant",
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call.id, "content": "sunny, 31"},
    ]
    second = ask(model, messages)
    expect(second.finish_reason, "stop")
    expect(second.message.tool_calls or [], [])
    expect(second.message.parsed, Forecast(**json.loads(second.message.content)))


@check
def structured():
    """structured output beside tools"""
    for model in ABLE:
        run_structured(model, answer_of)


@check
def streamed_structured():
    """structured output beside tools of a stream"""
    for model in ABLE:
        run_structured(model, streamed_answer_of)


@tool
def get_weather(city: str) -> str:
    """Tells the weather"""
    return f"sunny in {city}"


@check
def langchain_structured():
    """LangChain's structured output beside tools"""
    for model in ABLE:
        bound = chat_with(model).bind_tools([get_weather], strict=True, response_format=Forecast)
        messages = [HumanMessage(QUESTION["content"])]
        first = bound.invoke(messages)
        expect([(c["name"], c["args"]) for c in first.tool_calls], [("get_weather", {"city": "Rome"})])
        messages.append(first)
        for call in first.tool_calls:
            content = get_weather.invoke(call["args"])
            messages.append(ToolMessage(content=content, tool_call_id=call["id"]))
        second = bound.invoke(messages)
        expect(second.tool_calls, [])
        expect(second.additional_kwargs["parsed"], Forecast(**json.loads(second.content)))


@check
def without_tools():
    """an answer at once where the operator lets tools be dropped"""
    answer = answer_of(WITHOUT_TOOLS, [QUESTION])
    expect(answer.finish_reason, "stop")
    expect(answer.message.parsed, Forecast(**json.loads(answer.message.content)))


@check
def refused():
    """a refusal of schemas that says what to change"""
    for model in CANNOT_BE_HELD:
        expect_error(
            lambda: answer_of(model, [QUESTION]),
            openai.BadRequestError,
            code="unsupported_parameter",
            param="response_format",
        )


run_checks()
