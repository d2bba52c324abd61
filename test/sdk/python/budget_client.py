"""Calls under a budget: `budget_client.py SURFACE spent|reserved`."""

import os
import sys

import anthropic
import openai

URL = os.environ["SLUICE_BASE_URL"]
KEY = os.environ["SLUICE_KEY"]
surface, state = sys.argv[1:]

OPTIONS = {"api_key": KEY, "max_retries": 5}
TEXT = "Hello"
MESSAGES = [{"role": "user", "content": TEXT}]

if surface == "messages":
    client = anthropic.Anthropic(base_url=URL.removesuffix("/v1"), **OPTIONS)
    call = lambda: client.messages.create(model="chat-model", max_tokens=40, messages=MESSAGES)
else:
    client = openai.OpenAI(base_url=URL, **OPTIONS)
    chat = lambda: client.chat.completions.create(
        model="chat-model", max_tokens=40, messages=MESSAGES
    )
    responses = lambda: client.responses.create(
        model="chat-model", max_output_tokens=40, input=TEXT
    )
    call = {"chat": chat, "responses": responses}[surface]

if state == "reserved":
    call()
    sys.exit(0)
try:
    call()
except (openai.APIStatusError, anthropic.APIStatusError) as error:
    assert type(error) in (openai.RateLimitError, anthropic.RateLimitError), repr(error)
    assert error.status_code == 429, error.status_code
    assert "monthly budget" in error.message, error.message
    if surface == "messages":
        assert error.body["error"]["type"] == "billing_error", error.body
    else:
        assert (error.code, error.type) == ("budget_exceeded", "insufficient_quota"), repr(error)
    sys.exit(0)
raise AssertionError("nothing was refused")
