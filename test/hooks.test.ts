import { afterEach, describe, expect, test } from "bun:test";
import type { Turn } from "../src/domain/chat/conversation.ts";
import { GatewayError } from "../src/domain/errors/gateway-error.ts";
import type { UsageRecord } from "../src/domain/usage/usage.ts";
import type { AnswerPart, CallHook, HookPoints } from "../src/snapshot/call-hooks.ts";
import { chatOf, embeddingsOf, errorOf, streamOf } from "./support/bodies.ts";
import {
  startGateway,
  chatKinds,
  type GatewayOptions,
  type TestGateway,
} from "./support/gateway.ts";
import { ScriptedUpstream } from "./support/scripted-upstream.ts";

const chatPath = "/v1/chat/completions";

let open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open) await one[Symbol.asyncDispose]();
  open = [];
});

async function gatewayWith(
  hooks: readonly CallHook[],
  options: GatewayOptions = {},
): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, overrides: { hooks } });
  open.push(gateway);
  return gateway;
}

function hookOf(points: HookPoints, name = "test"): CallHook {
  return { name, begin: () => points };
}

function ask(content: string, more: object = {}) {
  return { model: "chat-model", messages: [{ role: "user", content }], ...more };
}

function turnOf(text: string): Turn {
  const at = "messages[0]";
  return { role: "user", blocks: [{ type: "text", text, at }], isPlain: true, at };
}

/** Replaces a word by stars in everything that a caller gets. */
function masked(part: AnswerPart): AnswerPart {
  if (part.kind !== "events") return part;
  const events = part.events.map((event) =>
    event.type === "text-delta" ? { ...event, text: "*" } : event,
  );
  return { kind: "events", events };
}

describe("a hook at request read", () => {
  test("replaces the request and its estimate", async () => {
    const gateway = await gatewayWith([
      hookOf({
        requestRead: (asked) =>
          asked.kind === "chat"
            ? { kind: "chat", request: { ...asked.request, turns: [turnOf("echo: short")] } }
            : asked,
      }),
    ]);
    const answer = await chatOf(await gateway.post(chatPath, ask(`echo: ${"long ".repeat(999)}`)));
    expect(answer.choices[0]?.message.content).toBe("short");
    expect(answer.usage?.prompt_tokens).toBeLessThan(50);
  });

  test("refuses with its own error, before anything is reserved or recorded", async () => {
    const gateway = await gatewayWith([
      hookOf({
        requestRead() {
          throw new GatewayError("invalid_value", { message: "Not that.", param: "messages" });
        },
      }),
    ]);
    for (const stream of [false, true]) {
      const refused = await gateway.post(chatPath, ask("echo: hi", { stream }));
      expect(refused.status).toBe(400);
      expect(await errorOf(refused)).toMatchObject({ message: "Not that.", param: "messages" });
    }
    expect(await gateway.usage()).toEqual([]);
  });

  test("that fails in another way is an internal error, whose cause stays in the log", async () => {
    const gateway = await gatewayWith([
      hookOf({
        requestRead() {
          throw new TypeError("broken hook");
        },
      }),
    ]);
    const failed = await gateway.post(chatPath, ask("echo: hi"));
    expect(failed.status).toBe(500);
    expect(await failed.text()).not.toContain("broken hook");
    expect(gateway.log.join()).toContain("TypeError");
  });
});

describe.each(chatKinds)("a hook before send, at %s", (kind) => {
  test("adds a header to every request, which is signed with it", async () => {
    const targets: string[] = [];
    const gateway = await gatewayWith(
      [
        hookOf({
          beforeSend(request, { target }) {
            targets.push(target.id);
            return { ...request, headers: { ...request.headers, "x-team": "search" } };
          },
        }),
      ],
      { kind },
    );
    const answer = await gateway.post(chatPath, ask("echo: hi"));
    expect((await chatOf(answer)).choices[0]?.message.content).toBe("hi");
    const embedding = await gateway.post("/v1/embeddings", {
      model: "embedding-model",
      input: "a",
    });
    expect((await embeddingsOf(embedding)).data).toHaveLength(1);
    expect(targets).toHaveLength(2);
  });
});

describe("a hook at the answer", () => {
  test("changes what the caller of a stream gets, and not what is counted", async () => {
    const plain = await gatewayWith([]);
    const gateway = await gatewayWith([hookOf({ answering: masked })]);
    const request = ask("echo: one two three", { stream: true });
    const { chunks, isDone } = await streamOf(await gateway.post(chatPath, request));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toMatch(/^\*+$/);
    expect(isDone).toBeTrue();
    await (await plain.post(chatPath, request)).text();
    const [[row], [plainRow]] = [await gateway.usage(), await plain.usage()];
    expect(row?.outputTokens).toBe(plainRow?.outputTokens ?? -1);
  });

  test("changes a whole answer", async () => {
    const answering = (part: AnswerPart): AnswerPart =>
      part.kind === "chat"
        ? {
            kind: "chat",
            answer: {
              ...part.answer,
              choices: part.answer.choices.map((choice) => ({
                ...choice,
                blocks: [{ type: "text", text: "changed" }],
              })),
            },
          }
        : part;
    const gateway = await gatewayWith([hookOf({ answering })]);
    const answer = await chatOf(await gateway.post(chatPath, ask("echo: hi")));
    expect(answer.choices[0]?.message.content).toBe("changed");
  });

  test("that throws ends a stream with one error frame, its upstream and its account", async () => {
    const upstream = new ScriptedUpstream();
    open.push({ [Symbol.asyncDispose]: () => upstream.stop() });
    const gateway = await gatewayWith(
      [
        hookOf({
          answering() {
            throw new GatewayError("invalid_value", { message: "Not that answer." });
          },
        }),
      ],
      { sections: { upstreams: `\n  simulator: { kind: openai, base_url: "${upstream.url}" }` } },
    );
    const answer = await gateway.post(chatPath, ask("echo: hi", { stream: true }));
    const { chunks, isDone } = await streamOf(answer);
    expect(chunks.map(({ error }) => error?.message)).toEqual(["Not that answer."]);
    expect(isDone).toBeFalse();
    while (!upstream.last.isAborted) await Bun.sleep(1);
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ outcome: "failed", status: 400 });
    expect(row?.outputTokens).toBeGreaterThan(0);
  });

  test("that refuses a whole answer leaves what it used in the ledger", async () => {
    const gateway = await gatewayWith([
      hookOf({
        answering() {
          throw new GatewayError("invalid_value", { message: "Not that answer." });
        },
      }),
    ]);
    const calls = [
      { path: chatPath, body: ask("echo: hi") },
      { path: "/v1/embeddings", body: { model: "embedding-model", input: "a" } },
    ];
    for (const { path, body } of calls) {
      const refused = await gateway.post(path, body);
      expect([refused.status, (await errorOf(refused)).message]).toEqual([400, "Not that answer."]);
    }
    const rows = await gateway.usage();
    expect(rows.map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
    expect(rows.every(({ inputTokens }) => inputTokens > 0)).toBeTrue();
  });
});

describe("a hook at the end of a call", () => {
  test("is called once for each, with the row of the ledger", async () => {
    const closed: UsageRecord[] = [];
    const gateway = await gatewayWith([hookOf({ callClosed: (record) => closed.push(record) })]);
    await (await gateway.post(chatPath, ask("echo: hi"))).text();
    await (await gateway.post(chatPath, ask("echo: hi", { stream: true }))).text();
    await (await gateway.post(chatPath, ask("fault: unavailable"))).text();
    const leaving = new AbortController();
    const left = await gateway.post(chatPath, ask("tokens: 5000", { stream: true }), {
      signal: leaving.signal,
    });
    await left.body?.getReader().read();
    leaving.abort();
    while (closed.length < 4) await Bun.sleep(1);
    const rows = await gateway.usage();
    const ids = (records: readonly UsageRecord[]) => records.map(({ id }) => id).toSorted();
    expect(ids(closed)).toEqual(ids(rows));
  });

  test("that throws changes nothing and is logged", async () => {
    const gateway = await gatewayWith([
      hookOf({
        callClosed() {
          throw new Error("late");
        },
      }),
    ]);
    expect((await gateway.post(chatPath, ask("echo: hi"))).status).toBe(200);
    expect(await gateway.usage()).toHaveLength(1);
    expect(gateway.log.join("\n")).toContain("a hook failed at the end of a call");
  });
});

test("hooks run in their order, and only for the calls that they want to follow", async () => {
  const order: string[] = [];
  const noting = (name: string, header: string): CallHook => ({
    name,
    begin({ headers }) {
      if (headers.get(header) === null) return undefined;
      const note = (point: string): void => void order.push(`${name} ${point}`);
      return {
        requestRead: (asked) => (note("read"), asked),
        beforeSend: (request) => (note("send"), request),
        answering: (part) => (note("answer"), part),
        callClosed: () => note("closed"),
      };
    },
  });
  const gateway = await gatewayWith([noting("one", "x-one"), noting("two", "x-two")]);
  await gateway.post(chatPath, ask("echo: hi"), { headers: { "x-one": "1", "x-two": "1" } });
  const points = ["read", "send", "answer", "closed"];
  expect(order).toEqual(points.flatMap((point) => [`one ${point}`, `two ${point}`]));
  order.length = 0;
  await gateway.post(chatPath, ask("echo: hi"), { headers: { "x-two": "1" } });
  expect(order).toEqual(points.map((point) => `two ${point}`));
});

describe("hooks.call_tag", () => {
  const sections = { hooks: "{ call_tag: { header: x-team } }" };

  function tagged({ log }: TestGateway): readonly Record<string, unknown>[] {
    const lines = log.map((line) => JSON.parse(line) as Record<string, unknown>);
    return lines.filter(({ message }) => message === "call tagged");
  }

  test("sends the tag on and logs it with what the call used", async () => {
    const seen: (string | null)[] = [];
    const answer = {
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    };
    const upstream = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        seen.push(request.headers.get("x-team"));
        return Response.json(answer);
      },
    });
    open.push({ [Symbol.asyncDispose]: () => upstream.stop(true) });
    const baseUrl = `http://127.0.0.1:${upstream.port}/v1`;
    const gateway = await gatewayWith([], {
      sections: {
        ...sections,
        upstreams: `\n  simulator: { kind: openai, base_url: "${baseUrl}" }`,
      },
    });
    await gateway.post(chatPath, ask("hi"), { headers: { "x-team": "search" } });
    await gateway.post(chatPath, ask("hi"));
    expect(seen).toEqual(["search", null]);
    expect(tagged(gateway)).toMatchObject([
      { tag: "search", inputTokens: 7, outputTokens: 3, parts: 1, outcome: "completed" },
    ]);
  });

  test("refuses an invalid tag, and follows a reload", async () => {
    const gateway = await gatewayWith([], { sections });
    const odd = { headers: { "x-team": "a b" } };
    const refused = await gateway.post(chatPath, ask("echo: hi"), odd);
    expect([refused.status, (await errorOf(refused)).param]).toEqual([400, "x-team"]);
    await gateway.reconfigure({ hooks: "{}" });
    expect((await gateway.post(chatPath, ask("echo: hi"), odd)).status).toBe(200);
    expect(tagged(gateway)).toEqual([]);
  });
});
