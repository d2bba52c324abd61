import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings, type ChatOpenAIFields } from "@langchain/openai";
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

  function chatWith(fields: ChatOpenAIFields = {}): ChatOpenAI {
    return new ChatOpenAI({
      model: "chat-model",
      apiKey: sdk.keys.valid,
      maxRetries: 0,
      configuration: { baseURL: sdk.baseUrl },
      ...fields,
    });
  }

  /**
   * The client's own way to join a stream (`streaming: true`) estimates its tokens with a table from
   * the internet, which tests must not need.
   */
  async function joinChunks(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
    let joined: AIMessageChunk | undefined;
    for await (const chunk of stream) joined = joined?.concat(chunk) ?? chunk;
    if (joined === undefined) throw new Error("an empty stream");
    return joined;
  }

  const getWeather = tool(({ city }) => `sunny in ${city}`, {
    name: "get_weather",
    description: "Tells the weather",
    schema: z.object({ city: z.string() }),
  });
  const getPopulation = tool(({ city }) => `three people in ${city}`, {
    name: "get_population",
    description: "Counts people",
    schema: z.object({ city: z.string() }),
  });

  describe("LangChain", () => {
    test("gets an answer with its counts", async () => {
      const answer = await chatWith().invoke("echo: Hello there");
      expect(answer.content).toBe("Hello there");
      expect(answer.usage_metadata).toMatchObject({ output_tokens: 2 });
      expect(answer.response_metadata["finish_reason"]).toBe("stop");
    });

    test("streams an answer, with the counts that it asks for by itself", async () => {
      const stream = await chatWith().stream("echo: Hello there");
      const pieces: string[] = [];
      const counts: unknown[] = [];
      for await (const chunk of stream) {
        pieces.push(chunk.text);
        if (chunk.usage_metadata !== undefined) counts.push(chunk.usage_metadata);
      }
      expect(pieces.filter((piece) => piece !== "")).toEqual(["Hello", " there"]);
      expect(counts).toHaveLength(1);
      expect(counts[0]).toMatchObject({ output_tokens: 2 });
    });

    test.each([false, true])("calls tools over two turns, streamed: %p", async (isStreamed) => {
      const model = chatWith().bindTools([getWeather, getPopulation]);
      const messages: BaseMessage[] = [new HumanMessage("weather and population of Rome, please")];
      const ask = async (): Promise<AIMessageChunk> =>
        isStreamed ? joinChunks(await model.stream(messages)) : model.invoke(messages);
      const first = await ask();
      expect(first.tool_calls?.map(({ name, args }) => [name, args])).toEqual([
        ["get_weather", { city: "Rome" }],
        ["get_population", { city: "Rome" }],
      ]);
      messages.push(first);
      for (const call of first.tool_calls ?? []) {
        const tool_call_id = call.id ?? "";
        messages.push(new ToolMessage({ content: "42", tool_call_id }));
      }
      const second = await ask();
      expect(second.text).not.toBe("");
      expect(second.tool_calls).toEqual([]);
    });

    test("forces a tool by its name", async () => {
      const tools = [getWeather, getPopulation];
      const model = chatWith().bindTools(tools, { tool_choice: "get_population" });
      const answer = await model.invoke("Hello");
      expect(answer.tool_calls?.map(({ name }) => name)).toEqual(["get_population"]);
    });

    test.each(["jsonSchema", "functionCalling", "jsonMode"] as const)(
      "gets structured output by %s",
      async (method) => {
        const person = z.object({ name: z.string(), age: z.number() });
        const schema = method === "jsonMode" ? z.looseObject({}) : person;
        const model = chatWith().withStructuredOutput(schema, { method, name: "person" });
        const answer: unknown = await model.invoke("Describe Ada Lovelace as JSON.");
        schema.parse(answer);
      },
    );

    test("sends images and several texts in one message", async () => {
      const url = "data:image/png;base64,iVBORw0KGgo=";
      const message = new HumanMessage({
        content: [
          { type: "text", text: "echo: A picture" },
          { type: "image_url", image_url: { url } },
        ],
      });
      expect((await chatWith().invoke([message])).text).toBe("A picture");
    });

    test("gets several answers, stop texts and log probabilities", async () => {
      const { generations } = await chatWith({ n: 2 }).generate([[new HumanMessage("echo: Hi")]]);
      expect(generations[0]?.map(({ text }) => text)).toEqual(["Hi", "Hi"]);
      const stopped = await chatWith({ stop: ["two"] }).invoke("echo: one two");
      expect(stopped.text.trim()).toBe("one");
      const asking = chatWith({ logprobs: true, topLogprobs: 1 }).invoke("echo: Hi");
      if (kind !== "openai") {
        const error: unknown = await asking.catch((reason: unknown) => reason);
        expect(error).toMatchObject({ status: 400, code: "unsupported_parameter" });
        return;
      }
      const probable = await asking;
      const { content } = probable.response_metadata["logprobs"] as {
        content: { token: string }[];
      };
      expect(content.map(({ token }) => token)).toEqual(["Hi"]);
    });

    test("gets embeddings of one text and of many", async () => {
      const embeddings = new OpenAIEmbeddings({
        model: "embedding-model",
        apiKey: sdk.keys.valid,
        maxRetries: 0,
        dimensions: 256,
        batchSize: 2,
        configuration: { baseURL: sdk.baseUrl },
      });
      const one = await embeddings.embedQuery("one");
      const many = await embeddings.embedDocuments(["one", "two", "three"]);
      expect(one).toHaveLength(256);
      expect(many).toHaveLength(3);
      expect(many[0]).toEqual(one);
    });
  });

  describe("LangChain is told of", () => {
    const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
      promise.then(
        () => "no error",
        (reason: unknown) => reason,
      );

    test.each([
      [{ apiKey: "sk-wrong" }, { status: 401, code: "invalid_api_key" }],
      [{ model: "no-such-model" }, { status: 400, code: "invalid_model", param: "model" }],
      [{ temperature: 3 }, { status: 400, code: "decimal_above_max_value", param: "temperature" }],
      [{ model: "overloaded-model" }, { status: 503, code: "model_unavailable" }],
      [{ model: "throttled-model" }, { status: 503, code: "model_unavailable" }],
    ])("the error of %j", async (fields, expected) => {
      expect(await errorOf(chatWith(fields).invoke("Hello"))).toMatchObject(expected);
      expect(await errorOf(chatWith(fields).stream("Hello"))).toMatchObject(expected);
    });

    test("a context that is too long, by the class it has for it", async () => {
      const error = await errorOf(chatWith({ model: "small-model" }).invoke("word ".repeat(100)));
      expect(error).toMatchObject({ name: "ContextOverflowError" });
      expect(String(error)).toContain("maximum context length is 32 tokens");
    });

    test("an exhausted plan", async () => {
      const model = chatWith({ apiKey: sdk.keys.fewRequests });
      await model.invoke("echo: 1");
      await model.invoke("echo: 2");
      const error = await errorOf(model.invoke("echo: 3"));
      expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "requests" });
    });

    test("an error in the middle of a stream", async () => {
      let text = "";
      const read = async (): Promise<void> => {
        const stream = await chatWith({ model: "breaking-model" }).stream("Hello");
        for await (const chunk of stream) text += chunk.text;
      };
      expect(await errorOf(read())).toMatchObject({ code: "model_unavailable" });
      expect(text).toBe("Hello");
    });
  });
});
