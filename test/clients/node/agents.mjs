/** OpenAI's Agents SDK with its defaults. */
import assert from "node:assert/strict";
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";
import { runChecks } from "./checks.mjs";

setTracingDisabled(true);
const modelProvider = new OpenAIProvider({
  baseURL: process.env.SLUICE_BASE_URL,
  apiKey: process.env.SLUICE_KEY,
});
const runner = new Runner({ modelProvider });

const chained = (name, result) =>
  tool({
    name,
    description: `Tool ${name}.`,
    parameters: z.object({ a: z.string() }),
    execute: async () => result,
  });
const agent = new Agent({
  name: "worker",
  model: "chat-model",
  instructions: "Be brief.",
  tools: [chained("one", "next: two"), chained("two", "done")],
});
const wanted = [
  ...["tool_call_item", "tool_call_output_item"],
  ...["tool_call_item", "tool_call_output_item"],
  "message_output_item",
];

await runChecks({
  async "a loop with tools"() {
    const { newItems } = await runner.run(agent, "Use one.");
    assert.deepEqual(
      newItems.map(({ type }) => type),
      wanted,
    );
  },
  async "a loop with tools, streamed"() {
    const stream = await runner.run(agent, "Use one.", { stream: true });
    for await (const _ of stream);
    await stream.completed;
    assert.deepEqual(
      stream.newItems.map(({ type }) => type),
      wanted,
    );
  },
  async "an answer of a schema"() {
    const outputType = z.object({ city: z.string() });
    const typed = new Agent({ name: "typed", model: "chat-model", outputType });
    const { finalOutput } = await runner.run(typed, "Name a city.");
    assert.equal(typeof finalOutput.city, "string");
  },
});
