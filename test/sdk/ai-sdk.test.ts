import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  embed,
  embedMany,
  generateObject,
  generateText,
  stepCountIs,
  streamObject,
  streamText,
  tool,
} from "ai";
import { z } from "zod";
import { chatKinds } from "../support/gateway.ts";
import { startSdkGateway, type SdkGateway } from "./sdk-gateway.ts";

describe.each(chatKinds)("with every alias on kind %s:", (kind) => {
  let sdk: SdkGateway;
  beforeAll(async () => {
    sdk = await startSdkGateway(kind);
  });
  afterAll(async () => {
    await sdk[Symbol.asyncDispose]();
  });

  function provider(apiKey = sdk.keys.valid) {
    return createOpenAICompatible({
      name: "sluice",
      baseURL: sdk.baseUrl,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    });
  }

  const chat = (id = "chat-model", apiKey?: string) => ({
    model: provider(apiKey)(id),
    maxRetries: 0,
  });
  const city = z.object({ city: z.string() });

  describe("the AI SDK", () => {
    test("gets a text with its counts", async () => {
      const { text, usage, finishReason } = await generateText({
        ...chat(),
        prompt: "echo: Hello there",
      });
      expect(text).toBe("Hello there");
      expect(usage.outputTokens).toBe(2);
      expect(finishReason).toBe("stop");
    });

    test("streams a text with its counts", async () => {
      const result = streamText({ ...chat(), prompt: "echo: Hello there" });
      const pieces: string[] = [];
      for await (const piece of result.textStream) pieces.push(piece);
      expect(pieces).toEqual(["Hello", " there"]);
      expect((await result.usage).outputTokens).toBe(2);
      expect(await result.finishReason).toBe("stop");
    });

    test("reads thoughts apart from the text", async () => {
      const result = streamText({ ...chat("reasoning-model"), prompt: "echo: Hi" });
      expect(await result.text).toBe("Hi");
      expect(await result.reasoningText).not.toBe("");
      const whole = await generateText({ ...chat("reasoning-model"), prompt: "echo: Hi" });
      expect(whole.reasoningText).toBe(await result.reasoningText);
      // Only one of the two wires counts thoughts apart.
      const counted = whole.usage.outputTokenDetails.reasoningTokens ?? 0;
      expect(counted > 0).toBe(kind === "openai");
    });

    const tools = (called: string[]) => ({
      get_weather: tool({
        description: "Tells the weather",
        inputSchema: city,
        execute: (input) => {
          called.push(`weather ${input.city}`);
          return "sunny";
        },
      }),
      get_population: tool({
        description: "Counts people",
        inputSchema: city,
        execute: (input) => {
          called.push(`population ${input.city}`);
          return "three";
        },
      }),
    });

    test("runs parallel tools over two turns", async () => {
      const called: string[] = [];
      const { text, steps } = await generateText({
        ...chat(),
        prompt: "weather and population of Rome, please",
        tools: tools(called),
        stopWhen: stepCountIs(3),
      });
      expect(called.toSorted()).toEqual(["population Rome", "weather Rome"]);
      expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
      expect(text).not.toBe("");
    });

    test("runs streamed tools over two turns", async () => {
      const called: string[] = [];
      const result = streamText({
        ...chat(),
        prompt: "weather in Rome, please",
        tools: tools(called),
        stopWhen: stepCountIs(3),
      });
      expect(await result.text).not.toBe("");
      expect(called).toEqual(["weather Rome"]);
      expect((await result.steps).map(({ finishReason }) => finishReason)).toEqual([
        "tool-calls",
        "stop",
      ]);
    });

    test("forces a tool by its name", async () => {
      const { toolCalls } = await generateText({
        ...chat(),
        prompt: "Hello",
        tools: tools([]),
        toolChoice: { type: "tool", toolName: "get_population" },
      });
      expect(toolCalls.map(({ toolName }) => toolName)).toEqual(["get_population"]);
    });

    const person = z.object({ name: z.string(), age: z.int(), tags: z.array(z.string()) });

    test("gets an object by its schema", async () => {
      const { object } = await generateObject({
        ...chat(),
        schema: person,
        prompt: "Describe Ada Lovelace.",
      });
      person.parse(object);
    });

    test("streams an object by its schema", async () => {
      const result = streamObject({ ...chat(), schema: person, prompt: "Describe Ada Lovelace." });
      let last: unknown;
      for await (const part of result.partialObjectStream) last = part;
      expect(person.parse(await result.object)).toEqual(person.parse(last));
    });

    test("sends images and stop texts", async () => {
      const image = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "base64");
      const { text } = await generateText({
        ...chat(),
        stopSequences: ["two"],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "echo: one two" },
              { type: "image", image, mediaType: "image/png" },
            ],
          },
        ],
      });
      expect(text.trim()).toBe("one");
    });

    test("gets embeddings as numbers", async () => {
      const model = provider().embeddingModel("embedding-model");
      const one = await embed({ model, value: "one", maxRetries: 0 });
      const many = await embedMany({ model, values: ["one", "two"], maxRetries: 0 });
      expect(one.embedding).toHaveLength(1024);
      expect(many.embeddings[0]).toEqual(one.embedding);
      expect(one.usage.tokens).toBeGreaterThan(0);
    });
  });

  describe("the AI SDK is told of", () => {
    async function callErrorOf(promise: PromiseLike<unknown>): Promise<APICallError> {
      const error: unknown = await promise.then(
        () => "no error",
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(APICallError);
      if (error instanceof APICallError) return error;
      throw new Error("not the expected error");
    }

    test.each([
      ["chat-model", "sk-wrong", 401, "invalid_api_key"],
      ["no-such-model", undefined, 400, "invalid_model"],
      ["overloaded-model", undefined, 503, "model_unavailable"],
      ["throttled-model", undefined, 503, "model_unavailable"],
    ] as const)("the error of %s with the key %p", async (...row) => {
      const [id, key, status, code] = row;
      const error = await callErrorOf(generateText({ ...chat(id, key), prompt: "Hello" }));
      expect(error.statusCode).toBe(status);
      expect(error.isRetryable).toBe(status >= 500);
      expect(error.data).toMatchObject({ error: { code, message: error.message } });
    });

    test("an exhausted plan, with how long to wait", async () => {
      const call = { ...chat("chat-model", sdk.keys.fewRequests), prompt: "echo: Hi" };
      await generateText(call);
      await generateText(call);
      const error = await callErrorOf(generateText(call));
      expect(error.statusCode).toBe(429);
      expect(error.isRetryable).toBe(true);
      expect(Number(error.responseHeaders?.["retry-after-ms"])).toBeGreaterThan(0);
      expect(error.data).toMatchObject({
        error: { code: "rate_limit_exceeded", type: "requests", param: null },
      });
    });

    test("an error in the middle of a stream, after the text before it", async () => {
      const errors: unknown[] = [];
      const result = streamText({
        ...chat("breaking-model"),
        prompt: "Hello",
        onError: ({ error }) => void errors.push(error),
      });
      const parts: string[] = [];
      for await (const part of result.fullStream) {
        if (part.type === "text-delta") parts.push(part.text);
        if (part.type === "finish") parts.push(part.finishReason);
      }
      expect(parts).toEqual(["Hello", "error"]);
      expect(errors).toHaveLength(1);
    });
  });
});
