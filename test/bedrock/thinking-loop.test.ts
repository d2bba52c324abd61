import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** One model of each way of thinking; the simulator verifies the thoughts as the provider does. */
const models = {
  "claude-37": "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
  "claude-4": "us.anthropic.claude-sonnet-4-20250514-v1:0",
  "claude-45": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  "claude-46": "us.anthropic.claude-sonnet-4-6",
  "claude-47": "us.anthropic.claude-opus-4-7",
  "claude-5": "global.anthropic.claude-opus-5",
  "claude-sonnet-55": "us.anthropic.claude-sonnet-5-5",
  "claude-fable": "us.anthropic.claude-fable-5-1",
} as const;
type Model = keyof typeof models;

let gateway: TestGateway;

beforeAll(async () => {
  const entries = Object.entries(models).map(
    ([alias, model]) => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 32000
    targets: [{ upstream: simulator, model: "${model}" }]`,
  );
  gateway = await startGateway({ kind: "bedrock", sections: { models: entries.join("") } });
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

interface Message {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly Detail[];
  readonly thinking_blocks?: readonly object[];
}
interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}
interface Detail {
  readonly type: string;
  readonly text?: string;
  readonly signature?: string;
  readonly data?: string;
  readonly index: number;
}
interface Asking {
  readonly model: Model;
  readonly effort?: string;
  readonly isStreamed?: boolean;
}

const tools = ["weather", "trains", "hotels"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } },
}));

async function answer(messages: readonly Message[], asking: Asking): Promise<Message> {
  const { model, effort, isStreamed = false } = asking;
  const body = {
    model,
    messages,
    tools,
    stream: isStreamed,
    ...(effort !== undefined && { reasoning_effort: effort }),
  };
  const response = await gateway.post("/v1/chat/completions", body);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  if (isStreamed) return joined(await response.text());
  const whole = (await response.json()) as { choices: { message: Message }[] };
  return whole.choices[0]?.message ?? { role: "none" };
}

/** The message as a client joins it from the deltas: lists grow, texts are put together. */
function joined(stream: string): Message {
  let content = "";
  let thoughts = "";
  const details: Detail[] = [];
  const calls: { id: string; name: string; arguments: string }[] = [];
  for (const line of stream.split("\n\n")) {
    if (!line.startsWith("data: {")) continue;
    const chunk = JSON.parse(line.slice(6)) as { choices: { delta: StreamedDelta }[] };
    const { delta } = chunk.choices[0] ?? { delta: {} };
    content += delta.content ?? "";
    thoughts += delta.reasoning_content ?? "";
    details.push(...(delta.reasoning_details ?? []));
    for (const { index, id, function: called } of delta.tool_calls ?? []) {
      if (id !== undefined) calls[index] = { id, name: called.name ?? "", arguments: "" };
      const call = calls[index];
      if (call !== undefined) call.arguments += called.arguments ?? "";
    }
  }
  return {
    role: "assistant",
    content,
    reasoning_content: thoughts,
    reasoning_details: details,
    tool_calls: calls.map(({ id, ...called }) => ({ id, type: "function", function: called })),
  };
}

interface StreamedDelta {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly Detail[];
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly function: { readonly name?: string; readonly arguments?: string };
  }[];
}

/** Three turns of tools and the last answer, each sent back as `keep` leaves it. */
async function loop(
  asking: Asking,
  { question = "What weather?", keep = (message: Message): Message => message } = {},
): Promise<readonly Message[]> {
  const messages: Message[] = [{ role: "user", content: question }];
  const answers: Message[] = [];
  for (const next of ["next: trains", "next: hotels", "All found."]) {
    const said = await answer(messages, asking);
    answers.push(said);
    const results = (said.tool_calls ?? []).map(({ id }) => ({
      role: "tool",
      tool_call_id: id,
      content: next,
    }));
    messages.push(keep(said), ...results);
  }
  answers.push(await answer(messages, asking));
  expect(answers.map((said) => said.tool_calls?.map((call) => call.function.name) ?? [])).toEqual([
    ["weather"],
    ["trains"],
    ["hotels"],
    [],
  ]);
  return answers;
}

const thinkers: readonly (readonly [Model, string | undefined])[] = [
  ["claude-37", "low"],
  ["claude-4", "medium"],
  ["claude-45", "high"],
  ["claude-46", "max"],
  ["claude-47", "xhigh"],
  ["claude-5", undefined],
  ["claude-5", "low"],
  ["claude-sonnet-55", "high"],
  ["claude-fable", "none"],
];

describe.each([false, true])("streamed: %p", (isStreamed) => {
  test.each(thinkers)("%s thinks between three tools with effort %s", async (model, effort) => {
    const asking = { model, isStreamed, ...(effort !== undefined && { effort }) };
    for (const said of await loop(asking)) {
      expect(said.reasoning_details).toHaveLength(1);
      const [detail] = said.reasoning_details ?? [];
      expect(detail).toMatchObject({ type: "reasoning.text", index: 0 });
      expect(detail?.signature).toBeString();
      // What the model omits unless asked is asked for with an effort.
      expect(detail?.text === "").toBe(effort === undefined);
      expect(said.reasoning_content ?? "").toBe(detail?.text ?? "none");
    }
  });

  test("hidden thoughts go round as they are", async () => {
    const question = "What weather? ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING";
    for (const said of await loop(
      { model: "claude-37", effort: "low", isStreamed },
      { question },
    )) {
      expect(said.reasoning_details).toHaveLength(1);
      const [detail] = said.reasoning_details ?? [];
      expect(detail?.type).toBe("reasoning.encrypted");
      expect(detail?.data).toBeString();
      expect(said.reasoning_content ?? "").toBe("");
    }
  });

  test("thoughts may come back as LiteLLM's callers keep them", async () => {
    const keep = ({ reasoning_details: details = [], ...said }: Message): Message => ({
      ...said,
      reasoning_details: [],
      thinking_blocks: details.map(({ text: thinking, signature }) => ({
        type: "thinking",
        thinking,
        signature,
      })),
    });
    const answers = await loop({ model: "claude-45", effort: "low", isStreamed }, { keep });
    for (const { reasoning_details: details } of answers) expect(details).toHaveLength(1);
  });
});

type Keep = (message: Message) => Message;
const spoiled: readonly (readonly [string, Keep])[] = [
  ["left out", (said) => ({ ...said, reasoning_details: [] })],
  ["changed", (said) => changed(said, (detail) => ({ ...detail, text: "I know better." }))],
  ["without signature", (said) => changed(said, (detail) => ({ ...detail, signature: "" }))],
  ["of nobody", (said) => changed(said, (detail) => ({ ...detail, signature: "c2lnbmVk" }))],
  ["of no shape", (said) => changed(said, () => ({ type: "reasoning.text", text: "7", index: 0 }))],
];

function changed(said: Message, change: (detail: Detail) => Detail): Message {
  return { ...said, reasoning_details: (said.reasoning_details ?? []).map(change) };
}

test.each(spoiled)("thoughts that are %s do not fail the call", async (_, keep) => {
  const [first, ...later] = await loop({ model: "claude-45", effort: "low" }, { keep });
  expect(first?.reasoning_details).toHaveLength(1);
  // The model cannot go on from thoughts that are not its own, and answers without any.
  for (const said of later) expect(said).not.toHaveProperty("reasoning_details");
  for (const said of await loop({ model: "claude-46", effort: "low" }, { keep })) {
    expect(said.reasoning_details).toHaveLength(1);
  }
});

test.each(["claude-46", "claude-4", "claude-5"] as const)(
  "the thoughts of another model do not fail a call to %s",
  async (model) => {
    const asked = { role: "user", content: "What weather?" };
    const said = await answer([asked], { model: "claude-45", effort: "low" });
    const id = said.tool_calls?.[0]?.id ?? "";
    const result = { role: "tool", tool_call_id: id, content: "Sunny." };
    const last = await answer([asked, said, result], { model, effort: "low" });
    expect(last.content).not.toBe("");
  },
);

test("thoughts stay out of a call that must not think", async () => {
  const asked = { role: "user", content: "What weather?" };
  const said = await answer([asked], { model: "claude-45", effort: "low" });
  const id = said.tool_calls?.[0]?.id ?? "";
  const result = { role: "tool", tool_call_id: id, content: "Sunny." };
  for (const effort of ["none", undefined]) {
    const asking = { model: "claude-45", ...(effort !== undefined && { effort }) } as const;
    const last = await answer([asked, said, result], asking);
    expect(last).not.toHaveProperty("reasoning_details");
  }
});
