import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { seriesOf } from "./metrics-page.ts";

/** What a caller sends creates no series of metrics, whatever it is. */

/** Of nine requests each. */
const rounds = Math.ceil(10_000 / 9);
const atOnce = 25;

let gateway: TestGateway;
beforeAll(async () => {
  const environments = `
  - { name: test, hosts: [127.0.0.1], models: ["*"] }`;
  gateway = await startGateway({ sections: { environments }, processes: 1 });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const chat = "/v1/chat/completions";
const body = (model: string, more = {}) => ({
  model,
  messages: [{ role: "user", content: "Hello" }],
  ...more,
});

/** One request of each kind, with a word of its own in all that a caller chooses. */
function junk(word: string): readonly Promise<Response>[] {
  const authorization = `Bearer sk-${word}`;
  const headers = {
    "x-request-id": word,
    "idempotency-key": word,
    "user-agent": word,
    traceparent: word,
  };
  return [
    gateway.post(chat, body(word)),
    gateway.post("/v1/embeddings", { model: word, input: word }),
    gateway.get(`/v1/models/${word}`),
    gateway.get(`/${word}/${word}?${word}=${word}`),
    gateway.get(`/v1/models?${word}`, { method: "PROPFIND" }),
    gateway.post(chat, body("chat-model"), { headers: { authorization } }),
    gateway.post(chat, body("chat-model"), { headers: { "x-sluice-capacity": word } }),
    // The call itself is answered.
    gateway.post(chat, body("chat-model", { user: word, [word]: word }), { headers }),
    gateway.get("/v1/models", { headers: { host: `${word}.example.com` } }),
  ];
}

async function send(words: readonly string[]): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>();
  for (let at = 0; at < words.length; at += atOnce) {
    const answers = words.slice(at, at + atOnce).flatMap(junk);
    for (const answer of await Promise.all(answers)) {
      statuses.add(answer.status);
      await answer.arrayBuffer();
    }
  }
  return statuses;
}

async function series(): Promise<readonly string[]> {
  await gateway.usage();
  const page = await fetch(`${gateway.adminUrl}/metrics`);
  return seriesOf(await page.text()).toSorted();
}

const wordsOf = (name: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, number) => `${name}-${number.toString(36).padStart(8, "0")}`);

test("10,000 requests with models, paths, keys, hosts and ids of no meaning create no series", async () => {
  // As many of each kind as get answers, and repeated ones.
  const statuses = await send(wordsOf("chaff", 100));
  // Reading the page makes a series, too.
  await series();
  const before = await series();
  const words = wordsOf("junk", rounds);
  expect(await send(words)).toEqual(statuses);
  expect(statuses).toEqual(new Set([200, 400, 401, 404, 405]));
  const after = await series();
  expect(after).toEqual(before);
  expect(after.filter((name) => /junk|chaff/.test(name))).toEqual([]);
});
