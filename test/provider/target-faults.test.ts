import { expect, test } from "bun:test";
import { chatOf, errorOf } from "../support/bodies.ts";
import {
  chunk,
  gatewayOf,
  startProvider,
  streamed,
  streamedText,
  whole,
  type ProviderRequest,
} from "./provider.ts";

/** What one caller's fault does to the others, and how the trouble of an account is known. */

const chat = (content: string, fields: object = {}) => ({
  model: "chat-model",
  messages: [{ role: "user", content }],
  ...fields,
});

/** Two providers, the first of which answers one text as the test says, and three keys. */
async function twoOf(refuse: (request: ProviderRequest) => Response) {
  const serve = (name: string) => (request: ProviderRequest) =>
    request.body["stream"] === true ? streamedText(name) : whole(name);
  const first = startProvider((request) =>
    request.text.includes("poison") ? refuse(request) : serve("first")(request),
  );
  const second = startProvider(serve("second"));
  const gateway = await gatewayOf([first, second]);
  const attacker = await gateway.createKey({ account: "attacker" });
  const others = [
    await gateway.createKey({ account: "one" }),
    await gateway.createKey({ account: "two" }),
  ];
  const as = (key: { readonly text: string }) => ({
    headers: { authorization: `Bearer ${key.text}` },
  });
  return {
    gateway,
    first,
    second,
    attack: (fields: object = {}) =>
      gateway.post("/v1/chat/completions", chat("poison", fields), as(attacker)),
    /** Who served the calls of the other keys, a call each. */
    served: async (): Promise<readonly string[]> => {
      const names: string[] = [];
      for (const key of others) {
        const response = await gateway.post("/v1/chat/completions", chat("hello"), as(key));
        names.push((await chatOf(response)).choices[0]?.message.content ?? "");
      }
      return names;
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await first[Symbol.asyncDispose]();
      await second[Symbol.asyncDispose]();
    },
  };
}

const refusal = (status: number, error: object, headers: Record<string, string> = {}) =>
  Response.json({ error }, { status, headers });

test.each([400, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529])(
  "a %i with Retry-After that one key causes moves no other key from the target",
  async (status) => {
    const error = { message: "no", type: "some_error" };
    await using world = await twoOf(() => refusal(status, error, { "retry-after": "300" }));
    await Promise.all(Array.from({ length: 8 }, () => world.attack()));
    expect(await world.served()).toEqual(["first", "first"]);
  },
);

test.each([
  ["a rate limit", "Rate limit reached: too many requests, quota and throttled"],
  ["an overload", "overloaded, at capacity, service_unavailable"],
  ["an account without quota", "insufficient_quota billing_not_active account_deactivated"],
  ["a low balance", "Your credit balance is too low to access the Anthropic API. poison"],
  ["an unknown model", "The model does not exist or you do not have access to it."],
])("a 400 whose message quotes %s is the caller's alone", async (_, words) => {
  const error = { message: `Invalid 'messages': ${words}`, type: "invalid_request_error" };
  await using world = await twoOf(() => refusal(400, error));
  for (let call = 0; call < 8; call += 1) expect((await world.attack()).status).toBe(400);
  expect(await world.served()).toEqual(["first", "first"]);
  expect(world.second.requests).toHaveLength(0);
});

test("an error in a 200 whose message quotes a rate limit moves no other key", async () => {
  const error = { message: "poison: Rate limit reached, insufficient_quota, overloaded" };
  await using world = await twoOf(({ body }) =>
    body["stream"] === true
      ? streamed([{ error }, chunk({ content: "x" })])
      : Response.json({ error }),
  );
  for (let call = 0; call < 8; call += 1) {
    expect((await world.attack({ stream: call % 2 === 0 })).status).toBe(200);
  }
  expect(await world.served()).toEqual(["first", "first"]);
});

const billing = "https://billing.example/pay-me and top up your account";
const accountErrors: readonly (readonly [string, number, object])[] = [
  ["insufficient_quota", 429, { code: "insufficient_quota", type: "insufficient_quota" }],
  ["insufficient_quota by its type", 429, { code: null, type: "insufficient_quota" }],
  ["billing_not_active", 429, { code: "billing_not_active", type: "billing_not_active" }],
  ["billing_hard_limit_reached", 400, { code: "billing_hard_limit_reached" }],
  ["account_deactivated", 401, { code: "account_deactivated" }],
  [
    "Anthropic's low balance",
    400,
    {
      type: "invalid_request_error",
      message:
        "Your credit balance is too low to access the Anthropic API. " +
        "Please go to Plans & Billing to upgrade or purchase credits.",
    },
  ],
  ["DeepSeek's low balance", 402, { message: "Insufficient Balance", type: "unknown_error" }],
];

test.each(accountErrors)(
  "%s goes to the next target, and the first is out for everybody",
  async (_, status, error) => {
    const refuse = () => refusal(status, { message: billing, ...error }, { "retry-after": "1" });
    await using world = await twoOf(refuse);
    expect((await chatOf(await world.attack())).choices[0]?.message.content).toBe("second");
    world.first.answers(refuse);
    expect(await world.served()).toEqual(["second", "second"]);
    expect(world.first.requests).toHaveLength(0);
    const line = world.gateway.log.find((each) => each.includes('"kind":"account-blocked"'));
    expect(line).toContain('"level":"error"');
    expect(line).toContain("see its billing page");
  },
);

test.each([
  ["a stream whose first event has it", { stream: true }],
  ["a whole answer that is an error", {}],
])("an account's trouble is known in %s, and for embeddings", async (_, fields) => {
  const error = { message: billing, code: "insufficient_quota" };
  await using blocked = startProvider(({ body }) =>
    body["stream"] === true ? streamed([{ error }]) : Response.json({ error }),
  );
  await using sound = startProvider(({ body, path }) => {
    if (path.endsWith("/embeddings")) {
      return Response.json({ data: [{ index: 0, embedding: [1] }] });
    }
    return body["stream"] === true ? streamedText("sound") : whole("sound");
  });
  await using gateway = await gatewayOf([blocked, sound]);
  const response = await gateway.post("/v1/chat/completions", chat("hi", fields));
  expect(await response.text()).toContain("sound");
  const embed = { model: "embedding-model", input: "hi" };
  expect((await gateway.post("/v1/embeddings", embed)).status).toBe(200);
  expect(blocked.requests).toHaveLength(1);
});

test.each([
  [429, "gpt-4o in organization org-abc on tokens per min (TPM)"],
  [413, "model `llama` in organization `org-abc` service tier `x` on tokens per minute (TPM)"],
])(
  "a %i for a request larger than the account's limit goes on, and pauses nothing",
  async (...row) => {
    const [status, where] = row;
    const message =
      `Request too large for ${where}: Limit 30000, Requested 48000. ` +
      "The input or output tokens must be reduced in order to run successfully.";
    const refuse = () => refusal(status, { message, type: "tokens", code: "rate_limit_exceeded" });
    await using world = await twoOf(refuse);
    expect((await chatOf(await world.attack())).choices[0]?.message.content).toBe("second");
    expect(await world.served()).toEqual(["first", "first"]);
    await using provider = startProvider(refuse);
    await using gateway = await gatewayOf([provider]);
    const response = await gateway.post("/v1/chat/completions", chat("hi"));
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).not.toContain("30000");
    expect(provider.requests).toHaveLength(1);
  },
);

test.each(accountErrors)("%s alone is 503, not to be retried", async (_, status, error) => {
  await using provider = startProvider(() => refusal(status, { message: billing, ...error }));
  await using gateway = await gatewayOf([provider]);
  for (const stream of [false, true]) {
    const response = await gateway.post("/v1/chat/completions", chat("hi", { stream }));
    expect([response.status, response.headers.get("x-should-retry")]).toEqual([503, "false"]);
    expect(response.headers.get("retry-after")).toBeNull();
    const { code, message } = await errorOf(response);
    expect(code).toBe("model_unavailable");
    expect(message).not.toContain("top up");
    expect(message.toLowerCase()).not.toContain("balance");
  }
  expect(provider.requests).toHaveLength(2);
});
