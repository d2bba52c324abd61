import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, Output, stepCountIs, tool } from "ai";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import type { ChatCompletionMessageParam } from "openai/resources";
import { z } from "zod";
import type { ChatFamily } from "../../src/upstreams/bedrock/models/facts.ts";
import { converseFamilies } from "../support/bedrock-identifiers.ts";
import { demoAliases, startAgentGateway, type AgentGateway } from "./agent-gateway.ts";
import {
  runReact,
  stopText,
  wantedAnswer,
  wantedTurns,
  type ReactMessage,
} from "./react-harness.ts";

/** Loops as agents run them, on models of Bedrock's. */

let agents: AgentGateway;
let client: OpenAI;
beforeAll(async () => {
  agents = await startAgentGateway();
  const apiKey = agents.gateway.key;
  client = new OpenAI({ baseURL: agents.baseUrl, apiKey, maxRetries: 0 });
});
afterAll(async () => {
  await agents[Symbol.asyncDispose]();
});

function chatWith(model: string): ChatOpenAI {
  const configuration = { baseURL: agents.baseUrl };
  return new ChatOpenAI({ model, apiKey: agents.gateway.key, maxRetries: 0, configuration });
}

const finishOf = ({ response_metadata: metadata }: BaseMessage): string =>
  z.object({ finish_reason: z.string() }).parse(metadata).finish_reason;

/** Models that take no stop sequence: behind two aliases of the demo, and of each such family. */
const llamas: readonly string[] = [
  "beta-3-70b",
  "beta-3-405b",
  "llama-3",
  "llama-3-1",
  "llama-3-2-vision",
  "llama-4",
];

describe("a loop of thoughts, actions and observations ends each turn before its observation:", () => {
  function expectRun({ answer, said }: Awaited<ReturnType<typeof runReact>>): void {
    expect(said.map(({ text }) => text)).toEqual([...wantedTurns]);
    expect(said.map(({ finishReason }) => finishReason)).toEqual(["stop", "stop", "stop"]);
    expect(answer).toBe(wantedAnswer);
  }
  const requestOf = (model: string, messages: readonly ReactMessage[]) => ({
    model,
    messages: [...messages],
    stop: [stopText],
  });

  test.each(llamas)("the official client at %s", async (model) => {
    const run = await runReact(async (messages) => {
      const { choices } = await client.chat.completions.create(requestOf(model, messages));
      const [choice] = choices;
      return { text: choice?.message.content ?? "", finishReason: choice?.finish_reason };
    });
    expectRun(run);
  });

  test.each(llamas)("the official client at %s, streamed", async (model) => {
    const run = await runReact(async (messages) => {
      const stream = client.chat.completions.stream(requestOf(model, messages));
      let text = "";
      stream.on("content", (piece) => (text += piece));
      const [choice] = (await stream.finalChatCompletion()).choices;
      expect(choice?.message.content).toBe(text);
      return { text, finishReason: choice?.finish_reason };
    });
    expectRun(run);
  });

  const toLangchain = ({ role, content }: ReactMessage): BaseMessage =>
    role === "user" ? new HumanMessage(content) : new AIMessage(content);

  test.each(llamas)("LangChain at %s, whole and streamed", async (model) => {
    const stopping = chatWith(model).withConfig({ stop: [stopText] });
    const whole = await runReact(async (messages) => {
      const answer = await stopping.invoke(messages.map(toLangchain));
      return { text: answer.text, finishReason: finishOf(answer) };
    });
    expectRun(whole);
    const streamed = await runReact(async (messages) => {
      let text = "";
      let finishReason: string | undefined;
      for await (const chunk of await stopping.stream(messages.map(toLangchain))) {
        text += chunk.text;
        if ("finish_reason" in chunk.response_metadata) finishReason = finishOf(chunk);
      }
      return { text, finishReason };
    });
    expectRun(streamed);
  });
});

const forecast = z.object({
  city: z.string(),
  celsius: z.int(),
  advice: z.array(z.string()),
});
const city = z.object({ city: z.string() });
const question = "What is the weather in Rome?";
const weather = zodFunction({
  name: "get_weather",
  description: "Tells the weather",
  parameters: city,
});
const format = zodResponseFormat(forecast, "forecast");
const schemaFormat = {
  type: "json_schema" as const,
  json_schema: { name: "forecast", strict: true, schema: forecast },
};

/** Whom no tool can be demanded of, and who knows no schemas, cannot be held to one. */
const cannotBeHeld: readonly ChatFamily[] = [
  "claude-haiku-5-5",
  "claude-sonnet-5-5",
  "claude-opus-5-5",
  "llama-3-1",
  "llama-3-2-vision",
  "llama-4",
  "cohere-command-r",
];
const withoutTools: readonly ChatFamily[] = [
  "llama-3",
  "mistral-7b",
  "mixtral-8x7b",
  "titan-text",
  "deepseek-r1",
];
const ableFamilies = converseFamilies.filter(
  (family) => !cannotBeHeld.includes(family) && !withoutTools.includes(family),
);

/** Of the demo's aliases, which here drop what their models do not have. */
const aliasWithoutTools = "gamma-8x7b";
const aliasesWithTools = demoAliases.filter((alias) => alias !== aliasWithoutTools);
const able = [...aliasesWithTools, ...ableFamilies];

test("the demo's aliases are those that a loop is tried with", () => {
  expect(demoAliases).toEqual([
    "alpha-sonnet-4",
    "alpha-haiku-3.5",
    "alpha-sonnet-3.5",
    "beta-3-70b",
    "beta-3-405b",
    "gamma-8x7b",
    "gamma-large",
  ]);
});

describe("structured output beside tools is a call, and then the answer by the schema:", () => {
  const asked = { tools: [weather], response_format: format };

  test.each(able)("the official client at %s", async (model) => {
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: question }];
    const first = (await client.chat.completions.parse({ ...asked, model, messages })).choices[0];
    const call = first?.message.tool_calls?.[0];
    expect(first?.finish_reason).toBe("tool_calls");
    expect(call?.function.parsed_arguments).toEqual({ city: "Rome" });
    if (first === undefined || call === undefined) throw new Error("no call");
    messages.push(first.message, { role: "tool", tool_call_id: call.id, content: "sunny, 31" });
    const second = (await client.chat.completions.parse({ ...asked, model, messages })).choices[0];
    expect(second?.finish_reason).toBe("stop");
    expect(second?.message.tool_calls ?? []).toEqual([]);
    forecast.parse(second?.message.parsed);
  });

  test.each(able)("the official client at %s, streamed", async (model) => {
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: question }];
    const ask = async () =>
      (await client.chat.completions.stream({ ...asked, model, messages }).finalChatCompletion())
        .choices[0];
    const first = await ask();
    const call = first?.message.tool_calls?.[0];
    expect(first?.finish_reason).toBe("tool_calls");
    if (first === undefined || call?.type !== "function") throw new Error("no call");
    expect(JSON.parse(call.function.arguments)).toEqual({ city: "Rome" });
    messages.push(first.message, { role: "tool", tool_call_id: call.id, content: "sunny, 31" });
    const second = await ask();
    expect(second?.finish_reason).toBe("stop");
    forecast.parse(second?.message.parsed);
  });

  test.each(able)("LangChain at %s", async (model) => {
    const getWeather = langchainTool(({ city: name }) => `sunny in ${name}`, {
      name: "get_weather",
      description: "Tells the weather",
      schema: city,
    });
    const bound = chatWith(model)
      .bindTools([getWeather], { strict: true })
      .withConfig({ response_format: schemaFormat });
    const messages: BaseMessage[] = [new HumanMessage(question)];
    const first = await bound.invoke(messages);
    expect(first.tool_calls?.map(({ name, args }) => [name, args])).toEqual([
      ["get_weather", { city: "Rome" }],
    ]);
    messages.push(first);
    for (const { id = "", args } of first.tool_calls ?? []) {
      const content = await getWeather.invoke(city.parse(args));
      messages.push(new ToolMessage({ content, tool_call_id: id }));
    }
    const second = await bound.invoke(messages);
    expect(finishOf(second)).toBe("stop");
    forecast.parse(JSON.parse(second.text));
  });

  test.each(able)("the AI SDK's own loop at %s", async (model) => {
    const cities: string[] = [];
    const provider = createOpenAICompatible({
      name: "sluice",
      baseURL: agents.baseUrl,
      apiKey: agents.gateway.key,
      supportsStructuredOutputs: true,
    });
    const { output, steps } = await generateText({
      model: provider(model),
      maxRetries: 0,
      prompt: question,
      tools: {
        get_weather: tool({
          description: "Tells the weather",
          inputSchema: city,
          execute: ({ city: name }) => {
            cities.push(name);
            return "sunny, 31";
          },
        }),
      },
      output: Output.object({ schema: forecast }),
      stopWhen: stepCountIs(4),
    });
    expect(cities).toEqual(["Rome"]);
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    forecast.parse(output);
  });
});

describe("what a model cannot do of it", () => {
  const plain = (model: string) => ({
    model,
    messages: [{ role: "user" as const, content: question }],
    tools: [weather],
  });
  const request = (model: string) => ({ ...plain(model), response_format: format });
  const errorOf = (answer: Promise<unknown>): Promise<unknown> =>
    answer.then(
      () => "no error",
      (reason: unknown) => reason,
    );

  test.each([...cannotBeHeld, ...withoutTools])("is a schema: %s", async (family) => {
    expect(await errorOf(client.chat.completions.parse(request(family)))).toMatchObject({
      status: 400,
      code: "unsupported_parameter",
      param: "response_format",
      message:
        "400 This model does not support JSON schemas. Use response_format json_object, and " +
        "describe the schema in the messages.",
    });
  });

  test.each(withoutTools)("is any tool: %s", async (family) => {
    expect(await errorOf(client.chat.completions.parse(plain(family)))).toMatchObject({
      status: 400,
      code: "unsupported_parameter",
      param: "tools",
      message: "400 This model cannot call tools. Remove tools.",
    });
  });

  test("is told in a header where the operator lets it drop", async () => {
    const adjusted = async (model: string): Promise<string | null> => {
      const { response } = await client.chat.completions.create(request(model)).withResponse();
      return response.headers.get("x-sluice-adjusted-parameters");
    };
    expect(await adjusted("beta-3-70b")).toBe("response_format=instruction");
    expect(await adjusted("beta-3-405b")).toBe("response_format=instruction");
    expect(await adjusted(aliasWithoutTools)).toBe("response_format=instruction, tools=dropped");
    expect(await adjusted("gamma-large")).toBeNull();
  });

  test("leaves the demo's alias without tools an answer by the schema at once", async () => {
    const answer = await client.chat.completions.parse(request(aliasWithoutTools));
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    forecast.parse(answer.choices[0]?.message.parsed);
  });
});
