import { expect, test } from "bun:test";
import { type JsonObject, objectOf } from "../../src/domain/json-fields.ts";
import { startGateway } from "../support/gateway.ts";
import { testWhere } from "../support/requirement.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";
import { eventsIn, responseOf } from "./response-events.ts";

const path = "/v1/responses";
const model = "chat-model";

testWhere(valkeyProgram !== null, "no Valkey server is installed")(
  "a response that one process stored is there for the others",
  async () => {
    await using valkey = await startValkey();
    const limits = `{ store: "${valkey.url}" }`;
    await using gateway = await startGateway({ processes: 2, sections: { limits } });
    const urls = [gateway.url, gateway.url];
    expect(new Set(urls).size).toBe(2);
    const headers = {
      authorization: `Bearer ${gateway.key}`,
      "content-type": "application/json",
    };
    const ask = async (url: string | undefined, fields: object): Promise<JsonObject> => {
      const body = JSON.stringify({ model, ...fields });
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body });
      return objectOf(await response.json()) ?? {};
    };
    const first = await ask(urls[0], { input: "echo: one" });
    const next = await ask(urls[1], { input: "echo: two", previous_response_id: first["id"] });
    expect(next).toMatchObject({ status: "completed", previous_response_id: first["id"] });
    const one = { method: "DELETE", headers };
    const removed = await fetch(`${urls[1]}${path}/${String(first["id"])}`, one);
    expect(removed.status).toBe(200);
    const gone = await fetch(`${urls[0]}${path}/${String(first["id"])}`, { headers });
    expect(gone.status).toBe(404);
  },
);

test("a repeat with its Idempotency-Key gets the same response, whole and streamed", async () => {
  const plans = `
  enterprise: { custom: true, idempotency: true }`;
  await using gateway = await startGateway({ sections: { plans } });
  for (const stream of [false, true]) {
    const send = async () => {
      const body = { model, input: "echo: Hello", stream };
      const headers = { "idempotency-key": `repeat-${stream}` };
      const response = await gateway.post(path, body, { headers });
      return { text: await response.text(), isReplay: response.headers.has("idempotent-replayed") };
    };
    const first = await send();
    const second = await send();
    expect([first.isReplay, second.isReplay]).toEqual([false, true]);
    expect(second.text).toBe(first.text);
    const response = stream ? responseOf(eventsIn(first.text)) : objectOf(JSON.parse(first.text));
    expect(response).toMatchObject({ status: "completed", store: true });
    const found = await gateway.get(`${path}/${String(response?.["id"])}`);
    expect(await found.json()).toEqual(response);
  }
});

test("a caller that leaves in the middle has nothing stored, and the next call is served", async () => {
  await using gateway = await startGateway();
  const leaving = new AbortController();
  const body = { model, input: "count: 100000", stream: true };
  const response = await gateway.post(path, body, { signal: leaving.signal });
  const reader = response.body?.getReader();
  const first = await reader?.read();
  const text = Buffer.from(first?.value ?? []).toString();
  const [, id = ""] = /"id":"(resp_[0-9a-f]+)"/.exec(text) ?? [];
  expect(id).not.toBe("");
  leaving.abort();
  expect((await gateway.get(`${path}/${id}`)).status).toBe(404);
  expect((await gateway.post(path, { model, input: "hi" })).status).toBe(200);
});
