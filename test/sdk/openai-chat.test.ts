import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources";
import { z } from "zod";
import { chatKinds } from "../support/gateway.ts";
import { startSdkGateway, type SdkGateway } from "./sdk-gateway.ts";

describe.each(chatKinds)("with every alias on kind %s:", (kind) => {
  let sdk: SdkGateway;
  let client: OpenAI;
  beforeAll(async () => {
    sdk = await startSdkGateway(kind);
    client = new OpenAI({ baseURL: sdk.baseUrl, apiKey: sdk.keys.valid, maxRetries: 0 });
  });
  afterAll(async () => {
    await sdk[Symbol.asyncDispose]();
  });

  const model = "chat-model";
  const user = (content: string): ChatCompletionMessageParam => ({ role: "user", content });
  const say = (text: string) => ({ model, messages: [user(`echo: ${text}`)] });

  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  };
  const weather: ChatCompletionTool = {
    type: "function",
    function: { name: "get_weather", description: "Tells the weather", parameters },
  };
  const population: ChatCompletionTool = {
    type: "function",
    function: { name: "get_population", description: "Counts people", parameters },
  };

  async function expectUnsupported(
    request: OpenAI.ChatCompletionCreateParamsNonStreaming,
    param: string,
  ): Promise<void> {
    const error: unknown = await client.chat.completions
      .create(request)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 400, code: "unsupported_parameter", param });
  }

  describe("an answer", () => {
    test("is the model's text, under the alias, with counts and the request's id", async () => {
      const answer = await client.chat.completions.create(say("Hello there"));
      expect(answer.choices[0]?.message.content).toBe("Hello there");
      expect(answer.choices[0]?.finish_reason).toBe("stop");
      expect(answer.model).toBe(model);
      expect(answer.usage?.completion_tokens).toBe(2);
      expect(answer._request_id).toMatch(/^req_[0-9a-f]{32}$/);
    });

    test("with n has as many choices", async () => {
      const answer = await client.chat.completions.create({ ...say("Hi"), n: 2 });
      expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([
        [0, "Hi"],
        [1, "Hi"],
      ]);
    });

    test("ends before a stop text", async () => {
      const answer = await client.chat.completions.create({ ...say("one two three"), stop: "two" });
      expect(answer.choices[0]?.message.content?.trim()).toBe("one");
      expect(answer.choices[0]?.finish_reason).toBe("stop");
    });

    test.each(["max_tokens", "max_completion_tokens"])("ends at %s", async (field) => {
      const answer = await client.chat.completions.create({ ...say("one two three"), [field]: 2 });
      expect(answer.choices[0]?.message.content).toBe("one two");
      expect(answer.choices[0]?.finish_reason).toBe("length");
    });

    test("has log probabilities when they are asked for", async () => {
      const request = { ...say("Hello there"), logprobs: true, top_logprobs: 2 };
      if (kind !== "openai") return expectUnsupported(request, "logprobs");
      const answer = await client.chat.completions.create(request);
      const tokens = answer.choices[0]?.logprobs?.content ?? [];
      expect(tokens.map(({ token }) => token)).toEqual(["Hello", " there"]);
      expect(tokens[0]?.top_logprobs).toHaveLength(2);
    });

    test("may be a refusal", async () => {
      const messages = [user("refuse: this")];
      const answer = await client.chat.completions.create({ model, messages });
      const { content, refusal } = answer.choices[0]?.message ?? {};
      // Of the two wires only one tells refusals from other words.
      expect(kind === "openai" ? refusal : content).toContain("I can't help");
      expect(kind === "openai" ? content : refusal).toBeNull();
    });

    test("is given to a message with an image", async () => {
      const url =
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" +
        "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
      const answer = await client.chat.completions.create({
        model,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "echo: A picture" },
              { type: "image_url", image_url: { url, detail: "low" } },
            ],
          },
        ],
      });
      expect(answer.choices[0]?.message.content).toBe("A picture");
    });

    test("is given to instructions of either role", async () => {
      for (const role of ["system", "developer"] as const) {
        const messages = [{ role, content: "Be brief." }, user("echo: Yes")];
        const answer = await client.chat.completions.create({ model, messages });
        expect(answer.choices[0]?.message.content).toBe("Yes");
      }
    });

    test("has headers that the client can read", async () => {
      const { response, request_id } = await client.chat.completions
        .create(say("Hi"))
        .withResponse();
      expect(request_id).toBe(response.headers.get("x-request-id"));
      expect(Number(response.headers.get("x-ratelimit-remaining-requests"))).toBeGreaterThan(0);
    });
  });

  describe("a stream", () => {
    test("is the same text in pieces", async () => {
      const stream = await client.chat.completions.create({ ...say("Hello there"), stream: true });
      let text = "";
      let finish: string | null | undefined;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        finish = chunk.choices[0]?.finish_reason ?? finish;
        expect(chunk.usage ?? undefined).toBeUndefined();
      }
      expect(text).toBe("Hello there");
      expect(finish).toBe("stop");
    });

    test("tells its usage in a last chunk when asked", async () => {
      const stream = await client.chat.completions.create({
        ...say("Hello there"),
        stream: true,
        stream_options: { include_usage: true },
      });
      const told = [];
      for await (const { usage, choices } of stream) if (usage) told.push({ usage, choices });
      expect(told).toHaveLength(1);
      expect(told[0]?.choices).toEqual([]);
      expect(told[0]?.usage.completion_tokens).toBe(2);
    });

    test("is put together by the client's helper", async () => {
      const stream = client.chat.completions.stream({
        ...say("Hello there"),
        stream_options: { include_usage: true },
      });
      const pieces: string[] = [];
      stream.on("content", (delta) => pieces.push(delta));
      const whole = await stream.finalChatCompletion();
      expect(pieces).toEqual(["Hello", " there"]);
      expect(whole.choices[0]?.message).toMatchObject({
        role: "assistant",
        content: "Hello there",
      });
      expect(whole.choices[0]?.finish_reason).toBe("stop");
      expect((await stream.totalUsage()).completion_tokens).toBe(2);
    });

    test("with n is put together choice by choice", async () => {
      const stream = client.chat.completions.stream({ ...say("Hi"), n: 2 });
      const whole = await stream.finalChatCompletion();
      expect(whole.choices.map(({ message }) => message.content)).toEqual(["Hi", "Hi"]);
    });

    test("of a refusal is put together as one", async () => {
      const stream = client.chat.completions.stream({ model, messages: [user("refuse: this")] });
      const [choice] = (await stream.finalChatCompletion()).choices;
      const { content, refusal } = choice?.message ?? {};
      expect(kind === "openai" ? refusal : content).toContain("I can't help");
    });

    test("has its log probabilities put together", async () => {
      const request = { ...say("Hello there"), logprobs: true };
      if (kind !== "openai") return expectUnsupported(request, "logprobs");
      const stream = client.chat.completions.stream(request);
      const tokens = (await stream.finalChatCompletion()).choices[0]?.logprobs?.content ?? [];
      expect(tokens.map(({ token }) => token)).toEqual(["Hello", " there"]);
    });

    test("that the caller leaves ends the upstream's work", async () => {
      const stream = await client.chat.completions.create({
        model: "stalling-model",
        messages: [user("count: 50")],
        stream: true,
      });
      let text = "";
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        if (text !== "") stream.controller.abort();
      }
      expect(text).not.toBe("");
      while (sdk.simulator.openCalls > 0) await Bun.sleep(5);
      let row;
      while (row === undefined) {
        await Bun.sleep(5);
        row = (await sdk.gateway.usage()).find((each) => each.model === "stalling-model");
      }
      expect(row).toMatchObject({ outcome: "abandoned", isStreamed: true });
    });
  });

  describe("tools", () => {
    test.each([false, true])("over two turns, streamed: %p", async (isStreamed) => {
      const messages = [user("What is the weather in Rome?")];
      const request = { model, messages, tools: [weather] };
      const ask = async () => {
        const whole = isStreamed
          ? await client.chat.completions.stream(request).finalChatCompletion()
          : await client.chat.completions.create(request);
        return whole.choices[0];
      };
      const first = await ask();
      expect(first?.finish_reason).toBe("tool_calls");
      expect(first?.message.content).toBeNull();
      const call = first?.message.tool_calls?.[0];
      if (first === undefined || call?.type !== "function") throw new Error("no call");
      expect(call.function.name).toBe("get_weather");
      expect(JSON.parse(call.function.arguments)).toEqual({ city: "Rome" });
      messages.push(first.message, { role: "tool", tool_call_id: call.id, content: "sunny" });
      const second = await ask();
      expect(second?.finish_reason).toBe("stop");
      expect(second?.message.content).not.toBe("");
      expect(second?.message.tool_calls ?? undefined).toBeUndefined();
    });

    test.each([false, true])("in parallel, streamed: %p", async (isStreamed) => {
      const messages = [user("What are weather and population of Rome?")];
      const request = { model, messages, tools: [weather, population] };
      const whole = isStreamed
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request);
      const calls = whole.choices[0]?.message.tool_calls ?? [];
      expect(calls.map((call) => call.type === "function" && call.function.name)).toEqual([
        "get_weather",
        "get_population",
      ]);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      messages.push(
        { role: "assistant", content: null, tool_calls: calls },
        ...calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "42" })),
      );
      const after = await client.chat.completions.create({ ...request, messages });
      expect(after.choices[0]?.finish_reason).toBe("stop");
    });

    test("may be limited to one call", async () => {
      const answer = await client.chat.completions.create({
        model,
        messages: [user("What are weather and population of Rome?")],
        tools: [weather, population],
        parallel_tool_calls: false,
      });
      expect(answer.choices[0]?.message.tool_calls).toHaveLength(1);
    });

    test("may be forced by name, required and forbidden", async () => {
      const request = { model, messages: [user("Hello")], tools: [weather, population] };
      const called = async (tool_choice: OpenAI.ChatCompletionToolChoiceOption) => {
        const answer = await client.chat.completions.create({ ...request, tool_choice });
        return answer.choices[0]?.message.tool_calls?.map(
          (call) => call.type === "function" && call.function.name,
        );
      };
      const forced = { type: "function", function: { name: "get_population" } } as const;
      expect(await called(forced)).toEqual(["get_population"]);
      expect(await called("required")).toEqual(["get_weather"]);
      expect(await called("none")).toBeUndefined();
    });

    test("are run by the client's own loop", async () => {
      const cities: string[] = [];
      const runner = client.chat.completions.runTools({
        model,
        messages: [user("What is the weather in Rome?")],
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              description: "Tells the weather",
              parameters,
              parse: (text: string) => z.object({ city: z.string() }).parse(JSON.parse(text)),
              function: ({ city }: { city: string }) => {
                cities.push(city);
                return "sunny";
              },
            },
          },
        ],
      });
      expect(await runner.finalContent()).not.toBe("");
      expect(cities).toEqual(["Rome"]);
    });
  });

  describe("structured output", () => {
    const person = z.object({ name: z.string(), age: z.int(), tags: z.array(z.string()) });

    test("is parsed by the client", async () => {
      const answer = await client.chat.completions.parse({
        model,
        messages: [user("Describe Ada Lovelace.")],
        response_format: zodResponseFormat(person, "person"),
      });
      const parsed = person.parse(answer.choices[0]?.message.parsed);
      expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toEqual(parsed);
    });

    test("of a stream is parsed by the client", async () => {
      const stream = client.chat.completions.stream({
        model,
        messages: [user("Describe Ada Lovelace.")],
        response_format: zodResponseFormat(person, "person"),
      });
      const answer = await stream.finalChatCompletion();
      person.parse(answer.choices[0]?.message.parsed);
    });

    test("of a tool's arguments is parsed by the client", async () => {
      const answer = await client.chat.completions.parse({
        model,
        messages: [user("Use save_person for Ada Lovelace.")],
        tools: [zodFunction({ name: "save_person", parameters: person })],
      });
      const call = answer.choices[0]?.message.tool_calls?.[0];
      person.parse(call?.type === "function" ? call.function.parsed_arguments : undefined);
    });

    test("may be any JSON object", async () => {
      const answer = await client.chat.completions.create({
        model,
        messages: [user("Give me JSON.")],
        response_format: { type: "json_object" },
      });
      expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toBeObject();
    });
  });
});
