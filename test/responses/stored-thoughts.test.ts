import { expect, test } from "bun:test";
import { isObject, type JsonObject, objectOf } from "../../src/domain/json-fields.ts";
import { startGateway } from "../support/gateway.ts";

/** A provider of Claude that signs its thoughts, and calls a tool after each. */
class SigningProvider implements AsyncDisposable {
  readonly asked: JsonObject[] = [];
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const number = this.asked.push(objectOf(await request.json()) ?? {});
      return Response.json({
        id: `msg_${number}`,
        type: "message",
        role: "assistant",
        model: "claude-opus-5",
        content: [
          { type: "thinking", thinking: `thought ${number}`, signature: `signature ${number}` },
          { type: "redacted_thinking", data: `redacted ${number}` },
          { type: "text", text: `text ${number}` },
          { type: "tool_use", id: `toolu_${number}`, name: "look", input: {} },
        ],
        stop_reason: "tool_use",
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 5 },
      });
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

test("references bring signed thoughts back to their provider, as a full resend does", async () => {
  await using provider = new SigningProvider();
  await using gateway = await startGateway({
    sections: {
      upstreams: `
  claude: { kind: anthropic, base_url: "${provider.url}", api_key: key, count_tokens: false }`,
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: claude, model: claude-opus-5 }]`,
    },
  });
  const tools = [{ type: "function", name: "look", parameters: { type: "object" } }];
  const include = ["reasoning.encrypted_content"];
  const ask = async (fields: object): Promise<JsonObject> => {
    const body = { model: "chat-model", tools, reasoning: { effort: "high" }, ...fields };
    const response = await gateway.post("/v1/responses", body);
    expect(response.status).toBe(200);
    return objectOf(await response.json()) ?? {};
  };
  const outputOf = ({ output }: JsonObject): readonly JsonObject[] =>
    Array.isArray(output) ? output.filter(isObject) : [];
  const resultOf = (items: readonly JsonObject[]) => ({
    type: "function_call_output",
    call_id: items.find(({ type }) => type === "function_call")?.["call_id"],
    output: "seen",
  });
  const lastMessages = (): unknown => provider.asked.at(-1)?.["messages"];

  const one = { role: "user", content: "one" };
  const first = outputOf(await ask({ input: [one], include }));
  expect(first.map(({ type }) => type)).toEqual([
    "reasoning",
    "reasoning",
    "message",
    "function_call",
  ]);
  const result = resultOf(first);
  await ask({ input: [one, ...first, result], include });
  const whole = lastMessages();
  const sent = JSON.stringify(whole);
  for (const part of ["thought 1", "signature 1", "redacted 1", "text 1", "toolu_1"]) {
    expect(sent).toContain(part);
  }
  // The AI SDK sends references without `include`; the call it sends itself.
  const bare = outputOf(await ask({ input: [one] }));
  expect(JSON.stringify(bare)).not.toContain("encrypted_content");
  const references = bare.map((item) =>
    item["type"] === "function_call" ? item : { type: "item_reference", id: item["id"] },
  );
  await ask({ input: [one, ...references, resultOf(bare)] });
  const numbers = JSON.stringify(lastMessages()).replaceAll(/([ _])3\b/g, "$11");
  expect(JSON.parse(numbers)).toEqual(whole);
});
