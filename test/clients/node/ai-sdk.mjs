/** The AI SDK with its default OpenAI provider, which sends responses. */
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { runChecks } from "./checks.mjs";

const provider = createOpenAI({
  baseURL: process.env.SLUICE_BASE_URL,
  apiKey: process.env.SLUICE_KEY,
});
const model = provider("chat-model");

/** The simulator calls the tool that the result of another names. */
const chained = (description, result) =>
  tool({ description, inputSchema: z.object({ a: z.string() }), execute: async () => result });
const tools = {
  one: chained("The first tool.", "next: two"),
  two: chained("The second tool.", "next: three"),
  three: chained("The third tool.", "done"),
};
const loop = { model, tools, prompt: "Use one.", stopWhen: stepCountIs(6) };
const wanted = [["one"], ["two"], ["three"], []];
const callsOf = (steps) => steps.map(({ toolCalls }) => toolCalls.map(({ toolName }) => toolName));
const stateless = { openai: { store: false, include: ["reasoning.encrypted_content"] } };

await runChecks({
  async "a text, whole and streamed"() {
    const prompt = "echo: Hello there";
    assert.equal((await generateText({ model, prompt })).text, "Hello there");
    const stream = streamText({ model, prompt });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, "Hello there");
    assert.equal(await stream.finishReason, "stop");
    assert.equal((await stream.usage).outputTokens, 2);
  },
  async "an object of a schema"() {
    const schema = z.object({ city: z.string() });
    const { object } = await generateObject({ model, prompt: "Name a city.", schema });
    assert.equal(typeof object.city, "string");
  },
  async "three steps with tools"() {
    const { steps, finishReason } = await generateText(loop);
    assert.deepEqual(callsOf(steps), wanted);
    assert.equal(finishReason, "stop");
  },
  async "three steps with tools, streamed"() {
    const stream = streamText(loop);
    await stream.consumeStream();
    assert.deepEqual(callsOf(await stream.steps), wanted);
  },
  async "three steps with tools, without store"() {
    const { steps } = await generateText({ ...loop, providerOptions: stateless });
    assert.deepEqual(callsOf(steps), wanted);
  },
  async "a cap of the answer"() {
    const prompt = "count: 40";
    const { finishReason } = await generateText({ model, prompt, maxOutputTokens: 16 });
    assert.equal(finishReason, "length");
  },
  async "an error"() {
    const wrong = provider("no-model");
    await assert.rejects(generateText({ model: wrong, prompt: "hi", maxRetries: 0 }), {
      statusCode: 400,
    });
  },
});
