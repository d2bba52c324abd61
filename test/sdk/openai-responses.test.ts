import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { chatKinds } from "../support/gateway.ts";
import { startSdkGateway, type SdkGateway } from "./sdk-gateway.ts";

const model = "chat-model";
const city = z.object({ city: z.string() });

describe.each(chatKinds)("responses on kind %s:", (kind) => {
  let sdk: SdkGateway;
  let client: OpenAI;
  beforeAll(async () => {
    sdk = await startSdkGateway(kind);
    client = new OpenAI({ baseURL: sdk.baseUrl, apiKey: sdk.keys.valid, maxRetries: 0 });
  });
  afterAll(async () => {
    await sdk[Symbol.asyncDispose]();
  });

  describe("the official client", () => {
    test("gets a text", async () => {
      const response = await client.responses.create({ model, input: "echo: Hello there" });
      expect(response.output_text).toBe("Hello there");
      expect(response.status).toBe("completed");
      expect(response.usage?.output_tokens).toBeGreaterThan(0);
      expect(response._request_id).toStartWith("req_");
    });

    test("streams a text through its helper", async () => {
      const stream = client.responses.stream({ model, input: "echo: Hello there" });
      let text = "";
      stream.on("response.output_text.delta", ({ delta }) => (text += delta));
      const final = await stream.finalResponse();
      expect([text, final.output_text]).toEqual(["Hello there", "Hello there"]);
    });

    test("parses an answer of a schema", async () => {
      const text = { format: zodTextFormat(city, "place") };
      const { output_parsed: parsed } = await client.responses.parse({
        model,
        input: "Name a city.",
        text,
      });
      expect(parsed?.city).toBeString();
    });

    test("streams a call and parses its arguments", async () => {
      const tools = [zodResponsesFunction({ name: "weather", parameters: city })];
      const input = "The weather in Paris?";
      const stream = client.responses.stream({ model, input, tools, tool_choice: "required" });
      const { output } = await stream.finalResponse();
      const call = output.find(({ type }) => type === "function_call");
      expect(call).toMatchObject({ name: "weather", status: "completed" });
    });

    test("ends at the cap, and gets a refusal of the model", async () => {
      const cut = await client.responses.create({
        model,
        input: "count: 40",
        max_output_tokens: 16,
      });
      expect(cut.incomplete_details?.reason).toBe("max_output_tokens");
      const refused = await client.responses.create({ model, input: "refuse: this" });
      expect(["completed", "incomplete"]).toContain(refused.status ?? "");
    });

    test("counts tokens", async () => {
      const count = await client.responses.inputTokens.count({ model, input: "Hello there" });
      expect(count.input_tokens).toBeGreaterThan(0);
    });

    test("gets its own classes of errors", async () => {
      const missing = await client.responses.retrieve("resp_1").catch((error: unknown) => error);
      expect(missing).toBeInstanceOf(OpenAI.NotFoundError);
      const stored = await client.responses
        .create({ model, input: "x", previous_response_id: "resp_1" })
        .catch((error: unknown) => error);
      expect(stored).toBeInstanceOf(OpenAI.BadRequestError);
      expect(stored).toMatchObject({
        code: "previous_response_not_found",
        param: "previous_response_id",
      });
      const other = new OpenAI({ baseURL: sdk.baseUrl, apiKey: sdk.keys.revoked, maxRetries: 0 });
      const revoked = await other.responses
        .create({ model, input: "x" })
        .catch((error: unknown) => error);
      expect(revoked).toBeInstanceOf(OpenAI.AuthenticationError);
    });
  });

  describe("LangChain in its mode for responses", () => {
    const chat = () =>
      new ChatOpenAI({
        model,
        useResponsesApi: true,
        apiKey: sdk.keys.valid,
        maxRetries: 0,
        configuration: { baseURL: sdk.baseUrl },
      });

    test("gets a text, whole and streamed", async () => {
      const answer = await chat().invoke("echo: Hello there");
      expect(answer.text).toBe("Hello there");
      let text = "";
      for await (const piece of await chat().stream("echo: Hello there")) text += piece.text;
      expect(text).toBe("Hello there");
    });

    test("calls two tools, one after the other, and answers", async () => {
      const schema = z.object({ a: z.string() });
      const results: Readonly<Record<string, string>> = { one: "next: two", two: "done" };
      const tools = Object.entries(results).map(([name, result]) =>
        tool(() => Promise.resolve(result), { name, description: `Tool ${name}.`, schema }),
      );
      const bound = chat().bindTools(tools);
      const messages: BaseMessage[] = [new HumanMessage("Use one.")];
      const called: string[] = [];
      for (let step = 0; step < 4; step += 1) {
        const answer = await bound.invoke(messages);
        messages.push(answer);
        for (const { id = "", name } of answer.tool_calls ?? []) {
          called.push(name);
          messages.push(new ToolMessage({ tool_call_id: id, content: results[name] ?? "" }));
        }
        if (answer.tool_calls?.length === 0) break;
      }
      expect(called).toEqual(["one", "two"]);
      expect(messages.at(-1)?.text).toMatch(/./);
    });

    test("gets an answer of a schema", async () => {
      const answer = await chat().withStructuredOutput(city).invoke("Name a city.");
      expect(answer.city).toBeString();
    });
  });
});
