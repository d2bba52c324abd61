import { describe, expect, test } from "bun:test";
import type { JsonRecord } from "../json.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../simulator.ts";
import { demoApiKey } from "./credentials.ts";

interface Answer {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly input: unknown }[];
  readonly reasoning: string;
  readonly reason: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

async function askBedrock(simulator: Simulator, model: string, body: JsonRecord): Promise<Answer> {
  const response = await post(simulator, `${model}/converse`, body);
  const answer = (await response.json()) as {
    output: { message: { content: Record<string, unknown>[] } };
    stopReason: string;
    usage: { inputTokens: number; outputTokens: number };
  };
  const { content } = answer.output.message;
  const thoughts = content.map(
    (block) =>
      (block["reasoningContent"] as { reasoningText: { text: string } } | undefined)?.reasoningText
        .text ?? "",
  );
  return {
    text: content.map((block) => (block["text"] as string | undefined) ?? "").join(""),
    calls: content.flatMap((block) => {
      const call = block["toolUse"] as { name: string; input: unknown } | undefined;
      return call === undefined ? [] : [{ name: call.name, input: call.input }];
    }),
    reasoning: thoughts.join(""),
    reason: answer.stopReason,
    inputTokens: answer.usage.inputTokens,
    outputTokens: answer.usage.outputTokens,
  };
}

function post(simulator: Simulator, path: string, body: JsonRecord): Promise<Response> {
  return fetch(`${simulator.origin}/model/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${demoApiKey}` },
    body: JSON.stringify(body),
  });
}

async function askOpenAi(simulator: Simulator, model: string, body: JsonRecord): Promise<Answer> {
  const response = await fetch(`${simulator.url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model, ...body }),
  });
  const answer = (await response.json()) as {
    choices: {
      message: {
        content: string | null;
        refusal: string | null;
        reasoning_content?: string;
        tool_calls?: { function: { name: string; arguments: string } }[];
      };
      finish_reason: string;
    }[];
    usage: { prompt_tokens: number; completion_tokens: number };
  };
  const [choice] = answer.choices;
  const message = choice?.message;
  return {
    text: message?.content ?? message?.refusal ?? "",
    calls: (message?.tool_calls ?? []).map(({ function: { name, arguments: input } }) => ({
      name,
      input: JSON.parse(input) as unknown,
    })),
    reasoning: message?.reasoning_content ?? "",
    reason: choice?.finish_reason ?? "",
    inputTokens: answer.usage.prompt_tokens,
    outputTokens: answer.usage.completion_tokens,
  };
}

const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const said = (text: string) => [{ role: "user", content: [{ text }] }];
const plain = (content: string) => [{ role: "user", content }];

describe("the same prompt on both wires", () => {
  const prompts: [string, JsonRecord, JsonRecord, string][] = [
    [
      "prose",
      { messages: said("Tell me of whales.") },
      { messages: plain("Tell me of whales.") },
      "end_turn",
    ],
    ["a script", { messages: said("count: 9") }, { messages: plain("count: 9") }, "end_turn"],
    ["a refusal", { messages: said("refuse: it") }, { messages: plain("refuse: it") }, "end_turn"],
    [
      "a limit",
      { messages: said("count: 9"), inferenceConfig: { maxTokens: 4 } },
      { messages: plain("count: 9"), max_tokens: 4 },
      "max_tokens",
    ],
    [
      "a stop sequence",
      { messages: said("count: 9"), inferenceConfig: { stopSequences: ["7", "5"] } },
      { messages: plain("count: 9"), stop: ["7", "5"] },
      "stop_sequence",
    ],
    [
      "instructions and a history",
      {
        system: [{ text: "Be kind." }],
        messages: [
          ...said("Hello"),
          { role: "assistant", content: [{ text: "Hi!" }] },
          ...said("How are you?"),
        ],
      },
      {
        messages: [
          { role: "system", content: "Be kind." },
          ...plain("Hello"),
          { role: "assistant", content: "Hi!" },
          ...plain("How are you?"),
        ],
      },
      "end_turn",
    ],
    [
      "tools",
      {
        messages: said("The forecast for Paris, please"),
        toolConfig: {
          tools: [
            { toolSpec: { name: "forecast", description: "d", inputSchema: { json: schema } } },
          ],
          toolChoice: { tool: { name: "forecast" } },
        },
      },
      {
        messages: plain("The forecast for Paris, please"),
        tools: [
          {
            type: "function",
            function: { name: "forecast", description: "d", parameters: schema },
          },
        ],
        tool_choice: { type: "function", function: { name: "forecast" } },
      },
      "tool_use",
    ],
    [
      "an answer whose form the prompt describes in words",
      { messages: said(`Respond with JSON that fits ${JSON.stringify(schema)}`) },
      { messages: plain(`Respond with JSON that fits ${JSON.stringify(schema)}`) },
      "end_turn",
    ],
    [
      "an answer by schema",
      {
        messages: said("Three days in Rome"),
        outputConfig: {
          textFormat: {
            type: "json_schema",
            structure: { jsonSchema: { name: "trip", schema: JSON.stringify(schema) } },
          },
        },
      },
      {
        messages: plain("Three days in Rome"),
        response_format: { type: "json_schema", json_schema: { name: "trip", schema } },
      },
      "end_turn",
    ],
    [
      "an image",
      {
        messages: [
          {
            role: "user",
            content: [
              { text: "What is it?" },
              { image: { format: "png", source: { bytes: "aGVsbG8=" } } },
            ],
          },
        ],
      },
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is it?" },
              { type: "image_url", image_url: { url: "data:image/png;base64,aGVsbG8=" } },
            ],
          },
        ],
      },
      "end_turn",
    ],
  ];

  test.each(prompts)("gets the same answer: %s", async (_what, bedrock, openAi, stopReason) => {
    await using simulator = startSimulator();
    const there = await askBedrock(simulator, "simulated-model", bedrock);
    const here = await askOpenAi(simulator, "simulated-model", openAi);
    expect({ ...there, reason: "" }).toEqual({ ...here, reason: "" });
    expect(there.reason).toBe(stopReason);
    const [first, second] = simulator.truth.entries;
    expect(first?.promptTokens).toBe(second?.promptTokens ?? -1);
    expect(first?.completionTokens).toBe(second?.completionTokens ?? -1);
  });

  test("gets the same reasoning, requested or by default", async () => {
    await using simulator = startSimulator();
    const unasked = [
      await askBedrock(simulator, "simulated-reasoning", { messages: said("Why whales?") }),
      await askOpenAi(simulator, "simulated-reasoning", { messages: plain("Why whales?") }),
    ];
    expect(unasked[0]?.reasoning).not.toBe("");
    expect(unasked[0]?.reasoning).toBe(unasked[1]?.reasoning ?? "");
    const asked = await askBedrock(simulator, "simulated-model", {
      messages: said("Why whales?"),
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 4096 } },
    });
    expect(asked.reasoning).toBe(unasked[0]?.reasoning ?? "");
  });
});

describe("Bedrock's wire", () => {
  const arn = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/a1b2c3d4e5f6";
  const limited: SimulatorOptions = {
    bedrock: { apiKeys: [demoApiKey], quotas: { models: { [arn]: { notReadyCalls: 1 } } } },
  };

  test("refuses the first calls of a provisioned model as not ready", async () => {
    await using simulator = startSimulator(limited);
    const path = `${encodeURIComponent(arn)}/converse`;
    const first = await post(simulator, path, { messages: said("echo: ok") });
    expect(first.headers.get("x-amzn-errortype")).toStartWith("ModelNotReadyException:");
    expect((await post(simulator, path, { messages: said("echo: ok") })).status).toBe(200);
  });

  test("answers with the guardrail's text, and with its trace if asked for", async () => {
    await using simulator = startSimulator();
    const guardrail = { guardrailIdentifier: "abc123", guardrailVersion: "DRAFT" };
    const ask = async (text: string) =>
      (await (
        await post(simulator, "simulated-model/converse", {
          messages: said(text),
          guardrailConfig: { ...guardrail, trace: "enabled" },
        })
      ).json()) as Record<string, unknown>;
    const blocked = await ask("guard: secrets");
    expect(blocked["stopReason"]).toBe("guardrail_intervened");
    expect(blocked["trace"]).toMatchObject({ guardrail: { actionReason: "Guardrail blocked." } });
    expect((await ask("echo: open"))["stopReason"]).toBe("end_turn");
  });

  test("returns the stop sequence if the request has its pointer", async () => {
    await using simulator = startSimulator();
    const answer = await post(simulator, "simulated-model/converse", {
      messages: said("count: 9"),
      inferenceConfig: { stopSequences: [" 4"] },
      additionalModelResponseFieldPaths: ["/stop_sequence"],
    });
    expect(await answer.json()).toMatchObject({
      additionalModelResponseFields: { stop_sequence: " 4" },
      stopReason: "stop_sequence",
    });
  });

  test("sends the tokens of embeddings in a header", async () => {
    await using simulator = startSimulator();
    const answer = await post(simulator, "cohere.embed-english-v3/invoke", {
      texts: ["one", "two"],
      input_type: "search_query",
    });
    expect(answer.headers.get("x-amzn-bedrock-input-token-count")).toBe("2");
    expect(simulator.truth.entries).toMatchObject([{ kind: "embeddings", promptTokens: 2 }]);
    const asChat = await post(simulator, "cohere.embed-english-v3/converse", {
      messages: said("a"),
    });
    expect(asChat.status).toBe(400);
    const streamed = await post(simulator, "simulated-model/invoke-with-response-stream", {});
    expect(await streamed.json()).toEqual({ message: "The model is unsupported for streaming" });
  });
});
