import { expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";

test("what a tool shows reaches a model that takes it, and is a clear 400 at others", async () => {
  const alias = (name: string, model: string) => `
  ${name}:
    kind: chat
    context_window: 32000
    targets: [{ upstream: simulator, model: "${model}" }]`;
  const models =
    alias("claude", "us.anthropic.claude-sonnet-4-20250514-v1:0") +
    alias("llama", "us.meta.llama4-maverick-17b-instruct-v1:0");
  await using gateway = await startGateway({ kind: "bedrock", sections: { models } });
  const ask = (model: string) =>
    gateway.post("/v1/chat/completions", {
      model,
      tools: [{ type: "function", function: { name: "shoot" } }],
      messages: [
        { role: "user", content: "What is on the screen?" },
        {
          role: "assistant",
          tool_calls: [{ id: "c", type: "function", function: { name: "shoot", arguments: "{}" } }],
        },
        {
          role: "tool",
          tool_call_id: "c",
          content: [
            { type: "text", text: "The screen." },
            { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
            { type: "file", file: { filename: "a.txt", file_data: "data:text/plain;base64,YQ==" } },
          ],
        },
      ],
    });
  expect((await ask("claude")).status).toBe(200);
  const refused = await ask("llama");
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({
    error: { code: "unsupported_parameter", param: "messages[2].content[1]" },
  });
});
