import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf } from "./support/bodies.ts";
import { startGateway, type TestGateway } from "./support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const hello = { model: "chat-model", messages: [{ role: "user", content: "echo: Hello there" }] };

test("a chat call is answered and stands in the ledger once with the upstream's counts", async () => {
  const response = await gateway.post("/v1/chat/completions", hello);
  expect(response.status).toBe(200);
  const body = await chatOf(response);
  expect(body.choices[0]?.message.content).toBe("Hello there");
  expect(body.model).toBe("chat-model");
  const id = response.headers.get("x-request-id");
  const rows = (await gateway.usage()).filter((row) => row.id === id);
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({
    outcome: "completed",
    status: 200,
    usageSource: "upstream",
    inputTokens: body.usage?.prompt_tokens ?? -1,
    outputTokens: body.usage?.completion_tokens ?? -1,
    target: "simulator/simulated-chat",
    isStreamed: false,
  });
});
