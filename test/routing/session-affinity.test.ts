import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { simulatorUpstream, startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/ledger-truth-process.ts";

/** Sessions at a model with three targets, over HTTP. */

type Headers = Readonly<Record<string, string>>;

const upstreams = ["one", "two", "three"] as const;
type Upstream = (typeof upstreams)[number];

const isUpstream = (name: string): name is Upstream => upstreams.some((known) => known === name);

const routing = (more = ""): string =>
  "{ retry_floor: 1000, first_backoff: 1ms, longest_backoff: 1ms, " +
  `out: { failures: 3, first: 200ms, longest: 200ms }${more} }`;

const targets = upstreams.map((name) => `{ upstream: ${name}, model: simulated-chat }`).join(", ");
const chatModel = (alias: string, more = ""): string => `
  ${alias}: { kind: chat, context_window: 200000, max_output_tokens: 4000, targets: [${targets}]${more} }`;

let simulators: Record<Upstream, Simulator>;
let gateway: TestGateway;

beforeAll(async () => {
  const pace = { tokensPerSecond: 500 };
  simulators = {
    one: startSimulator(pace),
    two: startSimulator(pace),
    three: startSimulator(pace),
  };
  const lines = upstreams.map((name) => {
    return `\n  ${name}: ${simulatorUpstream(simulators[name], "openai")}`;
  });
  gateway = await startGateway({
    sections: {
      routing: routing(),
      upstreams: lines.join(""),
      models: chatModel("chat-model") + chatModel("hedged", ", hedge_after: 50ms"),
    },
  });
});
beforeEach(() => {
  for (const name of upstreams) simulators[name].setFaultPlan([]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const name of upstreams) await simulators[name][Symbol.asyncDispose]();
});

const ask = (content: string, more: object = {}): object => ({
  model: "chat-model",
  messages: [{ role: "user", content }],
  max_tokens: 8,
  ...more,
});
const short = ask("echo: hi");

const session = (value: string): Headers => ({ "x-sluice-session": value });

/** Which upstream served. */
async function servedBy(headers: Headers, body: object = short, path = "/v1/chat/completions") {
  const response = await gateway.post(path, body, { headers });
  const answer = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${answer}`);
  return upstreamIn(response);
}

function upstreamIn({ headers }: Response): Upstream {
  const name = headers.get("x-sluice-target")?.split(";")[0] ?? "";
  if (isUpstream(name)) return name;
  throw new Error(`no upstream is named ${name}`);
}

async function servedOften(times: number, headers: Headers, body?: object): Promise<Set<Upstream>> {
  const served = new Set<Upstream>();
  for (let count = 0; count < times; count += 1) served.add(await servedBy(headers, body));
  return served;
}

async function affinityCounts(of = gateway): Promise<Readonly<Record<string, number>>> {
  const page = await (await of.admin("GET", "/metrics")).text();
  const counts: Record<string, number> = {};
  for (const [, name = "", result = "", value] of page.matchAll(
    /^sluice_affinity_(\w+)_total\{.*result="(\w+)"\} (\d+)$/gm,
  )) {
    counts[`${name} ${result}`] = (counts[`${name} ${result}`] ?? 0) + Number(value);
  }
  return counts;
}

describe("calls of one session", () => {
  test("are served by one target; other sessions by others", async () => {
    const served = new Set<Upstream>();
    // One in 60,000 draws of so many sessions leaves out a target.
    for (let index = 0; index < 30; index += 1) {
      const own = await servedOften(2, session(`session ${index}`));
      expect(own.size).toBe(1);
      for (const name of own) served.add(name);
    }
    expect(served.size).toBe(3);
  });

  test.each([
    ["Claude Code's header", { "x-claude-code-session-id": "5f0c1b5e" }, {}],
    ["Codex's header", { session_id: "5f0c1b5e" }, {}],
    ["its newer one", { "session-id": "5f0c1b5e" }, {}],
    ["x-session-affinity", { "x-session-affinity": "5f0c1b5e" }, {}],
    ["x-session-id", { "x-session-id": "5f0c1b5e" }, {}],
    ["session_id of the body", {}, { session_id: "5f0c1b5e" }],
  ])("are told by %s, all alike", async (_, headers: Headers, fields) => {
    const own = await servedBy(session("5f0c1b5e"));
    expect(await servedOften(5, headers, ask("echo: hi", fields))).toEqual(new Set([own]));
  });

  test("are told by prompt_cache_key, and by how a long prompt begins, or a marked one", async () => {
    const long = "word ".repeat(1_200);
    const conversation = (more: readonly object[]): object => ({
      ...short,
      messages: [{ role: "system", content: long }, { role: "user", content: "Hi" }, ...more],
    });
    const later = [
      { role: "assistant", content: "Hello" },
      { role: "user", content: "Go on" },
    ];
    const marked = { type: "text", text: "Rules", cache_control: { type: "ephemeral" } };
    for (const bodies of [
      [ask("echo: hi", { prompt_cache_key: "a key" }), ask("other", { prompt_cache_key: "a key" })],
      [conversation([]), conversation(later)],
      [
        {
          ...short,
          messages: [
            { role: "system", content: [marked] },
            { role: "user", content: "Hi" },
          ],
        },
      ],
    ]) {
      const served = new Set<Upstream>();
      for (let count = 0; count < 8; count += 1) {
        for (const body of bodies) served.add(await servedBy({}, body));
      }
      expect(served.size).toBe(1);
    }
  });

  test("are the same in every dialect", async () => {
    const own = await servedBy(session("in all"));
    const message = {
      model: "chat-model",
      max_tokens: 8,
      messages: [{ role: "user", content: "Hi" }],
    };
    const response = { model: "chat-model", input: "Hi", max_output_tokens: 16 };
    for (let count = 0; count < 3; count += 1) {
      expect(await servedBy(session("in all"), message, "/v1/messages")).toBe(own);
      expect(await servedBy(session("in all"), response, "/v1/responses")).toBe(own);
    }
  });

  test("are drawn by weight when the caller or the operator turns affinity off", async () => {
    const off = { "x-session-id": "same", "x-sluice-session": "off" };
    expect((await servedOften(40, off)).size).toBe(3);
    expect((await servedOften(40, {})).size).toBe(3);
    await gateway.reconfigure({ routing: routing(", session_affinity: false") });
    try {
      expect((await servedOften(40, session("same"))).size).toBe(3);
    } finally {
      await gateway.reconfigure({ routing: routing() });
    }
  });
});

describe("a session's target", () => {
  test("is left for the next rank while it fails, and comes back only once it works", async () => {
    const headers = session("of a failing target");
    const own = await servedBy(headers);
    simulators[own].setFaultPlan([{ mode: "error-500", times: Infinity }]);
    const others = await servedOften(20, headers);
    expect([others.size, others.has(own)]).toEqual([1, false]);
    const [next] = others;
    const truth = simulators[own].truth.entries.length;
    simulators[own].setFaultPlan([]);
    await until("the target serves again", async () => (await servedBy(headers)) === own);
    expect(simulators[own].truth.entries.length).toBeGreaterThan(truth);
    expect(await servedOften(5, headers)).toEqual(new Set([own]));
    const rows = await gateway.usage();
    const whys = rows.flatMap(({ routing: of }) => of?.candidates.map(({ why }) => why) ?? []);
    expect(whys).toContain("priority 1, weight 1 of 3; affinity: session, rank 1");
    expect(whys).toContain("priority 1, weight 1 of 2; affinity: session, rank 2");
    const isOut = /^last resort; out .*; affinity: session, rank 1$/;
    expect(whys.some((why) => isOut.test(why))).toBe(true);
    const counts = await affinityCounts();
    expect(counts["calls failed"]).toBeGreaterThan(0);
    expect(counts["calls out"]).toBeGreaterThan(0);
    expect(next).not.toBe(own);
  });

  test("is left while its provider refuses calls by a rate limit", async () => {
    const headers = session("of a throttled target");
    const own = await servedBy(headers);
    simulators[own].setFaultPlan([{ mode: "throttle-429", argument: 100, times: Infinity }]);
    const others = await servedOften(10, headers);
    expect([others.size, others.has(own)]).toEqual([1, false]);
    simulators[own].setFaultPlan([]);
    await until("the target serves again", async () => (await servedBy(headers)) === own);
  });

  test("is left while it has no place", async () => {
    const lines = upstreams.map((name) => {
      return `\n  ${name}: ${simulatorUpstream(simulators[name], "openai", "max_in_flight: 1")}`;
    });
    await using full = await startGateway({
      sections: {
        routing: routing(),
        upstreams: lines.join(""),
        models: chatModel("chat-model"),
      },
    });
    const headers = session("of a full target");
    for (const name of upstreams) {
      simulators[name].setFaultPlan([{ mode: "stall-mid", argument: 1_000, times: 1 }]);
    }
    const held = await full.post("/v1/chat/completions", ask("echo: hi", { stream: true }), {
      headers,
    });
    const other = await full.post("/v1/chat/completions", short, { headers });
    expect(upstreamIn(other)).not.toBe(upstreamIn(held));
    await Promise.all([other.text(), held.text()]);
    expect(await affinityCounts(full)).toMatchObject({ "calls kept": 1, "calls busy": 1 });
  });

  test("comes after the pool of the key's units, within the guarantee", async () => {
    const lines = upstreams.map((name) => {
      return `\n  ${name}: ${simulatorUpstream(simulators[name], "openai")}`;
    });
    const pooled = targets.replace("upstream: one,", "upstream: one, pool: bought,");
    await using sold = await startGateway({
      sections: {
        upstreams: lines.join(""),
        pools: "{ bought: { tokens_per_minute: 1000000, unit_tokens_per_minute: 100000 } }",
        models: chatModel("chat-model").replace(targets, pooled),
      },
      key: { provisionedUnits: 2, provisionedPool: "bought" },
    });
    const served = new Set<string>();
    for (let index = 0; index < 8; index += 1) {
      for (const capacity of ["auto", "on-demand-only"]) {
        const headers = { ...session(`session ${index}`), "x-sluice-capacity": capacity };
        const response = await sold.post("/v1/chat/completions", short, { headers });
        await response.text();
        served.add(
          `${capacity} ${response.headers.get("x-sluice-served-by")} ${upstreamIn(response)}`,
        );
      }
    }
    expect([...served].filter((each) => each.startsWith("auto"))).toEqual(["auto provisioned one"]);
    expect(served.size).toBeGreaterThan(2);
    expect(await affinityCounts(sold)).toMatchObject({ "calls kept": 8 });
    expect((await affinityCounts(sold))["calls none"]).toBeUndefined();
  });

  test("is left by a hedge when it is slow", async () => {
    const headers = session("of a slow target");
    const body = ask("echo: hi", { model: "hedged" });
    const own = await servedBy(headers, body);
    simulators[own].setFaultPlan([{ mode: "slow-first-byte", argument: 20_000, times: Infinity }]);
    expect(await servedBy(headers, body)).not.toBe(own);
  });
});

describe("an attacker", () => {
  test("who floods the target of one session gets the others, too, and leaves room there", async () => {
    const headers = session("flood");
    const body = ask("echo: hi", { stream: true });
    // None ends before all have begun.
    for (const name of upstreams) {
      simulators[name].setFaultPlan([{ mode: "stall-mid", argument: 4_000, times: Infinity }]);
    }
    const streams = await Promise.all(
      Array.from({ length: 60 }, () => gateway.post("/v1/chat/completions", body, { headers })),
    );
    const served = streams.map(upstreamIn);
    for (const name of upstreams) {
      const count = served.filter((each) => each === name).length;
      expect(count).toBeLessThanOrEqual(25);
      expect(count).toBeGreaterThan(0);
    }
    await Promise.all(streams.map((stream) => stream.text()));
    expect((await affinityCounts())["calls load"]).toBeGreaterThan(0);
  }, 180_000);

  test("who knows another tenant's session learns nothing of its target", async () => {
    const { text } = await gateway.createKey({ account: "another", application: "another" });
    const other = { authorization: `Bearer ${text}` };
    let same = 0;
    for (let index = 0; index < 30; index += 1) {
      const headers = session(`secret ${index}`);
      const own = await servedBy(headers);
      if ((await servedBy({ ...headers, ...other })) === own) same += 1;
    }
    // A third by chance; all, or none, would tell.
    expect(same).toBeGreaterThan(0);
    expect(same).toBeLessThan(27);
  });

  test("who sends names as long as a body, or none, delays and breaks nothing", async () => {
    const long = "s".repeat(6_000);
    expect((await servedOften(6, session(long))).size).toBe(1);
    const huge = ask("echo: hi", { session_id: "s".repeat(2_000_000) });
    expect((await servedOften(6, {}, huge)).size).toBe(1);
    const refused = await gateway.post("/v1/chat/completions", short, {
      headers: session("s".repeat(64 * 1024)),
    });
    expect(refused.status).toBe(431);
    await refused.text();
    for (const value of [7, ["a"], {}, null, ""]) {
      await servedBy({ "x-sluice-session": "" }, ask("echo: hi", { session_id: value }));
    }
  });

  test("finds no session in logs, rows, metrics, or at the provider", async () => {
    const name = "patient-4711-of-dr-who";
    await servedBy(session(name));
    await servedBy({}, ask("echo: hi", { session_id: name, prompt_cache_key: name }));
    expect(JSON.stringify(await gateway.usage())).not.toContain(name);
    expect(gateway.log.join("\n")).not.toContain(name);
    expect(await (await gateway.admin("GET", "/metrics")).text()).not.toContain(name);
    const truths = upstreams.map((each) => JSON.stringify(simulators[each].truth.entries));
    expect(truths.join("\n")).not.toContain(name);
  });
});

describe("with targets that cache prompts", () => {
  const model = "us.anthropic.claude-sonnet-4-6";
  const conversations = 8;
  const turns = 5;

  /** The cached share of the input of conversations that go on for some turns. */
  async function cachedShare(headersOf: (conversation: number) => Headers) {
    const caches = upstreams.map(() => startSimulator());
    const line = (cache: Simulator, index: number): string =>
      `\n  ${upstreams[index]}: ${simulatorUpstream(cache, "bedrock")}`;
    const own = upstreams.map(
      (name) => `{ upstream: ${name}, model: "${model}", bedrock: { prompt_cache: auto } }`,
    );
    await using cached = await startGateway({
      sections: {
        upstreams: caches.map(line).join(""),
        models: `
  chat-model: { kind: chat, context_window: 200000, max_output_tokens: 4000, targets: [${own.join(", ")}] }`,
      },
    });
    for (let conversation = 0; conversation < conversations; conversation += 1) {
      const messages: object[] = [
        { role: "system", content: `Rules ${conversation}. ${"word ".repeat(1_500)}` },
      ];
      for (let turn = 0; turn < turns; turn += 1) {
        messages.push({ role: "user", content: `Question ${turn}` });
        const body = { model: "chat-model", max_tokens: 8, messages };
        const headers = headersOf(conversation);
        const response = await cached.post("/v1/chat/completions", body, { headers });
        expect(response.status).toBe(200);
        await response.text();
        messages.push({ role: "assistant", content: "Answer" });
      }
    }
    const counts = await affinityCounts(cached);
    let [input, read] = [0, 0];
    for (const { inputTokens, cachedInputTokens } of await cached.usage()) {
      input += inputTokens;
      read += cachedInputTokens;
    }
    for (const cache of caches) await cache[Symbol.asyncDispose]();
    return { share: read / input, counts, input, read };
  }

  test("sessions read nearly all of their prompts from the cache, and metrics tell the share", async () => {
    const off = await cachedShare(() => session("off"));
    const named = await cachedShare((conversation) => session(`conversation ${conversation}`));
    const begun = await cachedShare(() => ({}));
    const calls = conversations * turns;
    // All but the first turn of each: 80 %.
    for (const { share } of [named, begun]) expect(share).toBeGreaterThan(0.75);
    expect(off.share).toBeLessThan(0.7);
    expect(named.counts).toEqual({
      "calls kept": calls,
      "input_tokens kept": named.input,
      "cached_tokens kept": named.read,
    });
    expect(off.counts).toEqual({
      "calls none": calls,
      "input_tokens none": off.input,
      "cached_tokens none": off.read,
    });
  }, 180_000);
});
