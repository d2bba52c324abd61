/** Calls under a budget: `budget.mjs spent|reserved`. */
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const { SLUICE_BASE_URL, SLUICE_KEY } = process.env;
const [, , state] = process.argv;

const client = new Anthropic({
  baseURL: SLUICE_BASE_URL.replace(/\/v1$/, ""),
  apiKey: SLUICE_KEY,
  maxRetries: 5,
});
const call = client.messages.create({
  model: "chat-model",
  max_tokens: 40,
  messages: [{ role: "user", content: "Hello" }],
});
if (state === "reserved") await call;
else {
  await assert.rejects(call, (error) => {
    assert.equal(error.constructor.name, "RateLimitError");
    assert.equal(error.status, 429);
    assert.match(error.message, /monthly budget/);
    assert.equal(error.error.error.type, "billing_error");
    return true;
  });
}
