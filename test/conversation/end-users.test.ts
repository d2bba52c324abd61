import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { NotingProvider } from "./noting-provider.ts";

type Json = Readonly<Record<string, unknown>>;

const name = "jane.doe@example.com";
const cache = "cache of jane";
const pseudonym = expect.stringMatching(/^eu_[0-9A-Za-z]{16}$/);
const cachePseudonym = expect.stringMatching(/^pc_[0-9A-Za-z]{16}$/);

let provider: NotingProvider;
let gateway: TestGateway;
let otherKey: string;

const ways = ["pseudonym", "as_sent", "none"] as const;
const kinds = ["openai", "anthropic"] as const;

beforeAll(async () => {
  provider = new NotingProvider();
  const upstreams = ways.flatMap((way) =>
    kinds.map((kind) => {
      const setting = way === "pseudonym" ? "" : `forward_end_users: ${way}`;
      return `\n  ${kind}-${way}: ${provider.upstream(kind, setting)}`;
    }),
  );
  upstreams.push(`\n  openai-sessions: ${provider.upstream("openai", "session_cache_key: true")}`);
  const models = ways.flatMap((way) => [
    ...kinds.map((kind) => modelOf("chat", `${kind}-${way}`, "")),
    modelOf("embedding", `openai-${way}`, "vectors-"),
  ]);
  gateway = await startGateway({
    sections: {
      upstreams: upstreams.join(""),
      models: [...models, modelOf("chat", "openai-sessions", "")].join(""),
    },
  });
  otherKey = (await gateway.createKey({ account: "another-account" })).text;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

function modelOf(kind: string, upstream: string, prefix: string): string {
  const targets = `[{ upstream: ${upstream}, model: m }]`;
  const answer = kind === "chat" ? "max_output_tokens: 1000, " : "";
  return `\n  ${prefix}${upstream}: { kind: ${kind}, context_window: 9000, ${answer}targets: ${targets} }`;
}

type Asking = readonly [path: string, body: object];
const requests = {
  chat: (model: string): Asking => [
    "/v1/chat/completions",
    { model, messages: [{ role: "user", content: "Hi" }], user: name, safety_identifier: name },
  ],
  responses: (model: string): Asking => [
    "/v1/responses",
    { model, input: "Hi", user: name, safety_identifier: name },
  ],
  messages: (model: string): Asking => [
    "/v1/messages",
    {
      model,
      max_tokens: 10,
      messages: [{ role: "user", content: "Hi" }],
      metadata: { user_id: name },
    },
  ],
  embeddings: (model: string): Asking => [
    "/v1/embeddings",
    { model: `vectors-${model}`, input: "Hi", user: name },
  ],
};
type Asked = keyof typeof requests;

async function sentFor(
  asked: Asked,
  model: string,
  more: object = {},
  key = gateway.key,
  session: Readonly<Record<string, string>> = {},
) {
  const [path, body] = requests[asked](model);
  const headers = { authorization: `Bearer ${key}`, ...session };
  const response = await gateway.post(path, { ...body, ...more }, { headers });
  expect(response.status).toBe(200);
  await response.body?.cancel();
  const { received: sent } = provider;
  return { text: sent, body: JSON.parse(sent) as Json };
}

const combinations = (["chat", "responses", "messages"] as const).flatMap((asked) =>
  kinds.map((kind) => [asked, kind] as const),
);

/** The name in what was sent, wherever the kind has it. */
function nameIn({ user, metadata }: Json): unknown {
  return user ?? (metadata as Json | undefined)?.["user_id"];
}

describe.each([...combinations, ["embeddings", "openai"] as const])("%s to %s", (asked, kind) => {
  test("a name leaves as a pseudonym, the same for its account and another for others", async () => {
    const first = await sentFor(asked, `${kind}-pseudonym`);
    const again = await sentFor(asked, `${kind}-pseudonym`);
    const other = await sentFor(asked, `${kind}-pseudonym`, {}, otherKey);
    expect(nameIn(first.body)).toEqual(pseudonym);
    expect(nameIn(again.body)).toBe(nameIn(first.body));
    expect(nameIn(other.body)).toEqual(pseudonym);
    expect(nameIn(other.body)).not.toBe(nameIn(first.body));
    for (const { text } of [first, again, other]) expect(text).not.toContain("jane");
  });

  test("the operator may send it as it is, or not at all", async () => {
    const asSent = await sentFor(asked, `${kind}-as_sent`);
    expect(nameIn(asSent.body)).toBe(name);
    const dropped = await sentFor(asked, `${kind}-none`);
    expect(nameIn(dropped.body)).toBeUndefined();
    expect(dropped.text).not.toContain("jane");
  });
});

test.each(["chat", "responses"] as const)(
  "the name of a cache is an account's own, and stays when end users are dropped: %s",
  async (asked) => {
    const more = { prompt_cache_key: cache };
    const { body } = await sentFor(asked, "openai-pseudonym", more);
    const other = await sentFor(asked, "openai-pseudonym", more, otherKey);
    expect(body["safety_identifier"]).toEqual(pseudonym);
    expect(body["prompt_cache_key"]).toEqual(cachePseudonym);
    expect(other.body["prompt_cache_key"]).toEqual(cachePseudonym);
    expect(other.body["prompt_cache_key"]).not.toBe(body["prompt_cache_key"]);
    const dropped = await sentFor(asked, "openai-none", more);
    expect(dropped.body["prompt_cache_key"]).toBe(body["prompt_cache_key"]);
    expect(dropped.body).not.toHaveProperty("safety_identifier");
    const asSent = await sentFor(asked, "openai-as_sent", more);
    expect(asSent.body).toMatchObject({ safety_identifier: name, prompt_cache_key: cache });
  },
);

test.each(["chat", "responses", "messages"] as const)(
  "a session is the name of its cache where the server takes it, an account's own: %s",
  async (asked) => {
    const session = { "x-claude-code-session-id": "session of jane" };
    const keyOf = async (more: object, of: string, headers: typeof session | object) => {
      const { text, body } = await sentFor(asked, "openai-sessions", more, of, { ...headers });
      expect(text).not.toContain("jane");
      return body["prompt_cache_key"];
    };
    const own = await keyOf({}, gateway.key, session);
    expect(own).toEqual(expect.stringMatching(/^[0-9a-f]{16}$/));
    expect(await keyOf({}, gateway.key, session)).toBe(own);
    expect(await keyOf({}, otherKey, session)).not.toBe(own);
    expect(await keyOf({}, gateway.key, {})).toBeUndefined();
    const off = { ...session, "x-sluice-session": "off" };
    expect(await keyOf({}, gateway.key, off)).toBeUndefined();
    // What the caller names goes first.
    if (asked !== "messages") {
      expect(await keyOf({ prompt_cache_key: cache }, gateway.key, session)).toEqual(
        cachePseudonym,
      );
    }
    const { body } = await sentFor(asked, "openai-pseudonym", {}, gateway.key, session);
    expect(body).not.toHaveProperty("prompt_cache_key");
  },
);

test("the same name is the same end user in every dialect", async () => {
  const names: unknown[] = [];
  for (const [asked, kind] of combinations) {
    names.push(nameIn((await sentFor(asked, `${kind}-pseudonym`)).body));
  }
  expect(new Set(names).size).toBe(1);
});
