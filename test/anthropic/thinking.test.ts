import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AnthropicGateway, startAnthropicGateway } from "./anthropic-gateway.ts";

/**
 * The simulator refuses thoughts that are not its own, unchanged; for the newest models also when
 * anything before them has changed.
 */
const models = ["claude-sonnet-4", "claude-opus-4-6", "claude-opus-5", "claude-fable-5-1"];
let world: AnthropicGateway;

beforeAll(async () => {
  world = await startAnthropicGateway({ models });
});
afterAll(() => world[Symbol.asyncDispose]());

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const rounds = 50;

interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: string;
}

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly signature?: string;
}

async function post(path: string, body: object): Promise<unknown> {
  const response = await world.gateway.post(path, body);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return text.startsWith("event:") ? { content: contentIn(text) } : JSON.parse(text);
}

/** The blocks that the events of a stream add up to. */
function contentIn(stream: string): readonly object[] {
  const content: Record<string, string | object>[] = [];
  for (const [, data = ""] of stream.matchAll(/^data: (.*)$/gm)) {
    const {
      type,
      content_block: block,
      delta = {},
    } = JSON.parse(data) as {
      readonly type: string;
      readonly content_block?: object;
      readonly delta?: Readonly<Record<string, string>>;
    };
    if (block !== undefined) content.push({ ...block });
    const last = content.at(-1) ?? {};
    if (type === "content_block_delta") {
      for (const field of ["text", "thinking", "signature", "partial_json"]) {
        const before = typeof last[field] === "string" ? last[field] : "";
        if (delta[field] !== undefined) last[field] = before + delta[field];
      }
    }
    if (type !== "content_block_stop" || last["type"] !== "tool_use") continue;
    const { partial_json: json } = last;
    last["input"] = JSON.parse(typeof json === "string" ? json : "{}") as object;
    delete last["partial_json"];
  }
  return content;
}

describe.each(models)("%s", (model) => {
  test.each([false, true])(
    "takes its thoughts back from callers of Messages, streamed %p",
    async (stream) => {
      const tools = [
        { name: "weather", description: "Weather", input_schema: schema },
        { name: "trains", input_schema: schema },
      ];
      const isBudget = model === "claude-sonnet-4";
      const thinking = isBudget
        ? { type: "enabled", budget_tokens: 2_000 }
        : { type: "adaptive", display: "summarized" };
      const messages: Message[] = [{ role: "user", content: "Weather and trains in Rome?" }];
      const base = { model, max_tokens: 8_000, system: "Be brief.", tools, thinking };
      let signatures = 0;
      let called = 0;
      for (let round = 0; round < rounds; round += 1) {
        // Marks move with the last turn, and change nothing that is signed.
        const marked = messages.map((message, index) =>
          index === messages.length - 1 ? withMark(message) : message,
        );
        const answer = (await post("/v1/messages", { ...base, stream, messages: marked })) as {
          content: readonly Block[];
        };
        const calls = answer.content.filter(({ type }) => type === "tool_use");
        signatures += answer.content.filter(({ signature }) => signature !== undefined).length;
        messages.push({ role: "assistant", content: answer.content });
        const content = calls.map(({ id }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: "next: weather",
        }));
        const more = [{ type: "text", text: `Weather and trains again, ${round}?` }];
        messages.push({ role: "user", content: calls.length > 0 ? content : more });
        if (round === 20) messages.push({ role: "system", content: "Be kind." });
        called += calls.length;
      }
      expect(signatures).toBe(rounds);
      expect(called).toBeGreaterThan(rounds / 2);
    },
  );

  test.each([false, true])(
    "takes its thoughts back from callers of chat, streamed %p",
    async (stream) => {
      const messages: Message[] = [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Weather and trains in Rome?" },
      ];
      for (let round = 0; round < rounds; round += 1) {
        // What the application tells on the way changes nothing before it.
        if (round === 20) messages.push({ role: "system", content: "Be kind." });
        await chatRound(model, messages, stream);
      }
      const results = messages.filter(({ role }) => role === "tool");
      expect(results.length).toBeGreaterThan(rounds / 2);
    },
  );

  test("takes its thoughts back where instructions alone began the conversation", async () => {
    const messages: Message[] = [{ role: "system", content: "Weather and trains in Rome?" }];
    for (let round = 0; round < 4; round += 1) await chatRound(model, messages, false);
  });
});

/** Adds an answer with a thought, and the results of its calls or another question. */
async function chatRound(model: string, messages: Message[], stream: boolean): Promise<void> {
  const tools = ["weather", "trains"].map((name) => ({
    type: "function",
    function: { name, parameters: schema },
  }));
  const asked = { model, max_tokens: 8_000, reasoning_effort: "low", tools, messages, stream };
  const response = await world.gateway.post("/v1/chat/completions", asked);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  expect(response.headers.get("x-sluice-adjusted-parameters") ?? "").not.toContain("thoughts");
  const message = stream ? chatMessageIn(text) : wholeChatMessage(text);
  expect(message.reasoning_content).toContain("Step 1");
  expect(message.reasoning_details).toHaveLength(1);
  messages.push(message);
  const calls = message.tool_calls ?? [];
  for (const { id } of calls) {
    messages.push({ role: "tool", content: "next: trains", tool_call_id: id });
  }
  if (calls.length === 0) messages.push({ role: "user", content: "Weather and trains again?" });
}

interface ChatMessage extends Message {
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly object[];
  readonly tool_calls?: readonly { readonly id: string }[];
}

function wholeChatMessage(text: string): ChatMessage {
  const { choices } = JSON.parse(text) as { choices: readonly { message: ChatMessage }[] };
  const [choice] = choices;
  if (choice === undefined) throw new Error("There is no choice.");
  return choice.message;
}

/** The message that the deltas of a stream add up to. */
function chatMessageIn(stream: string): ChatMessage {
  expect(stream).toEndWith("data: [DONE]\n\n");
  const message = { role: "assistant", content: "", reasoning_content: "" };
  const details: object[] = [];
  const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
  for (const [, data = ""] of stream.matchAll(/^data: (\{.*)$/gm)) {
    const { choices } = JSON.parse(data) as { choices: readonly { delta: ChatDelta }[] };
    const { delta = {} } = choices[0] ?? {};
    message.content += delta.content ?? "";
    message.reasoning_content += delta.reasoning_content ?? "";
    details.push(...(delta.reasoning_details ?? []));
    for (const { index, id, function: called } of delta.tool_calls ?? []) {
      const call = (calls[index] ??= {
        id: id ?? "",
        type: "function",
        function: { name: called.name ?? "", arguments: "" },
      });
      call.function.arguments += called.arguments;
    }
  }
  return { ...message, reasoning_details: details, ...(calls.length > 0 && { tool_calls: calls }) };
}

interface ChatDelta {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly object[];
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly function: { readonly name?: string; readonly arguments: string };
  }[];
}

test("thoughts of another model are left out, and the call is answered", async () => {
  const asked = (model: string, messages: readonly Message[]) =>
    post("/v1/messages", {
      model,
      max_tokens: 4_000,
      thinking: { type: "adaptive", display: "summarized" },
      messages,
    }) as Promise<{ content: readonly Block[] }>;
  const first: Message = { role: "user", content: "echo: one" };
  const theirs = await asked("claude-opus-4-6", [first]);
  expect(theirs.content[0]?.type).toBe("thinking");
  const turn = { role: "assistant", content: theirs.content };
  const again = await asked("claude-fable-5-1", [
    first,
    turn,
    { role: "user", content: "echo: two" },
  ]);
  expect(again.content.at(-1)).toMatchObject({ type: "text", text: "two" });
});

function withMark({ role, content }: Message): Message {
  const blocks: readonly object[] =
    typeof content === "string" ? [{ type: "text", text: content }] : (content as object[]);
  const last = blocks.at(-1);
  const marked = { ...last, cache_control: { type: "ephemeral" } };
  return { role, content: [...blocks.slice(0, -1), marked] };
}
