import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { runChecks } from "./checks.mjs";

const { SLUICE_BASE_URL, SLUICE_KEY } = process.env;
const model = createAnthropic({ baseURL: SLUICE_BASE_URL, apiKey: SLUICE_KEY })("chat-model");

const seen = [];
const tools = {
  look: tool({
    description: "Looks",
    inputSchema: z.object({ at: z.string() }),
    execute: ({ at }) => {
      seen.push(at);
      return `saw ${at}`;
    },
  }),
  ring: tool({ description: "Rings", inputSchema: z.object({}), execute: () => "rang" }),
};
const steps = [
  { text: "One.", tool: "look", input: { at: "a" } },
  { tool: "look", input: { at: "b" } },
  { tool: "ring", input: {} },
  { text: "All done." },
];
const question = {
  model,
  tools,
  prompt: `steps: ${JSON.stringify(steps)} end of steps`,
  stopWhen: stepCountIs(6),
  providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } } },
};

await runChecks({
  "three steps with tools": async () => {
    const answer = await generateText(question);
    assert.equal(answer.text, "All done.");
    assert.equal(answer.steps.length, 4);
    assert.deepEqual(seen, ["a", "b"]);
    assert.ok(answer.usage.inputTokens > 0);
  },
  "three steps, streamed": async () => {
    const answer = streamText(question);
    for await (const part of answer.fullStream) if (part.type === "error") throw part.error;
    assert.equal(await answer.text, "All done.");
    assert.equal((await answer.steps).length, 4);
  },
  "an object": async () => {
    const schema = z.object({ city: z.string() });
    const { object } = await generateObject({ model, schema, prompt: "A city" });
    assert.equal(typeof object.city, "string");
  },
});
