import { expect, test } from "bun:test";
import { startSimulator } from "../simulator.ts";

test("thoughts of the newest models are refused when anything before them has changed", async () => {
  await using simulator = startSimulator();
  const ask = async (model: string, system: string, messages: readonly object[]) => {
    const response = await fetch(`${simulator.url}/messages`, {
      method: "POST",
      headers: { "x-api-key": "key", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({
        model,
        system,
        messages,
        max_tokens: 9_000,
        thinking: { type: "adaptive", display: "summarized" },
      }),
    });
    return { status: response.status, text: await response.text() };
  };
  const first = { role: "user", content: "echo: one" };
  for (const [model, expected] of [
    ["claude-fable-5-1", 400],
    ["claude-opus-5", 200],
  ] as const) {
    const { text } = await ask(model, "Be brief.", [first]);
    const { content } = JSON.parse(text) as { content: readonly object[] };
    const more = [first, { role: "assistant", content }, { role: "user", content: "echo: two" }];
    const same = await ask(model, "Be brief.", more);
    expect(same.status).toBe(200);
    const other = await ask(model, "Be kind.", more);
    expect(other.status).toBe(expected);
    const [thought, ...rest] = content;
    const forged = { role: "assistant", content: [{ ...thought, thinking: "Other" }, ...rest] };
    expect((await ask(model, "Be brief.", [first, forged, first])).status).toBe(400);
  }
});
