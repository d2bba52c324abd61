import { expect, test } from "bun:test";
import { checkChatRequest } from "../../openai-chat/chat-request.ts";

interface Acceptance {
  readonly why: string;
  /** Fields to send over a valid body. */
  readonly send: Readonly<Record<string, unknown>>;
}

const table = await Bun.file(`${import.meta.dir}/accepted-chat.jsonl`).text();

for (const line of table.trim().split("\n")) {
  const { why, send } = JSON.parse(line) as Acceptance;
  test(`takes ${why} as it is except for nulls, without a copy`, () => {
    const body = { model: "m", messages: [{ role: "user", content: "hi" }], ...send };
    const nothingNull = (_key: string, value: unknown) => value ?? undefined;
    const before = JSON.stringify(body, nothingNull);
    expect(checkChatRequest(body) as unknown).toBe(body);
    expect(JSON.stringify(body)).toBe(before);
  });
}
