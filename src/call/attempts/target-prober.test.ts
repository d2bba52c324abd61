import { afterEach, expect, test } from "bun:test";
import {
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
  adapterOf,
} from "../../../test/support/pipeline-fixtures.ts";
import { systemClock } from "../../domain/clock.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import type { Model } from "../../domain/model.ts";
import type { ProbeWatch } from "../../routing/health/target-health.ts";
import type { ProbeResult } from "../../routing/health/target-state.ts";
import { unknownTarget } from "../../routing/target-view.ts";
import { TargetProber } from "./target-prober.ts";

const servers: { stop(closes: boolean): unknown }[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.stop(true)));

/** An OpenAI server with the given answers. */
function serve(respond: (body: unknown) => Response | Promise<Response>) {
  const seen: unknown[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const body: unknown = await request.json();
      seen.push(body);
      return respond(body);
    },
  });
  servers.push(server);
  return { url: `http://127.0.0.1:${server.port}`, seen };
}

const stream = (...frames: string[]): Response =>
  new Response(frames.map((frame) => `data: ${frame}\n\n`).join(""), {
    headers: { "content-type": "text/event-stream" },
  });
const chunk = (delta: object, finish: string | null = null): string =>
  JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }] });
const pong = (): Response => stream(chunk({ content: "pong" }), chunk({}, "stop"), "[DONE]");

interface ProbeOutcome {
  readonly ends: readonly string[];
  readonly probed: readonly string[];
}

/** Probes the target once; resolves to what its health was told. */
async function probe(
  url: string,
  {
    model = {},
    timeoutMs = 100,
    chat = {},
  }: {
    readonly model?: Partial<Model>;
    readonly timeoutMs?: number;
    readonly chat?: Partial<ChatCodec>;
  } = {},
): Promise<ProbeOutcome> {
  const probed: string[] = [];
  const ended = Promise.withResolvers<ProbeResult>();
  const watch: ProbeWatch = { timeoutMs, ended: ended.resolve };
  const { services, placesAt } = pipelineOf();
  const prober = new TargetProber({
    ...services,
    clock: systemClock,
    health: { tryBeginProbe: () => watch },
    onProbed: (_, failure) => void probed.push(failure?.kind ?? "answered"),
  });
  const upstream = upstreamOf("up", { adapter: adapterOf(url, { chat }) });
  const found = {
    model: modelOf(model),
    target: targetOf("up"),
    upstream,
    view: unknownTarget,
  };
  prober.probe(found, snapshotOf([upstream]));
  const result = await ended.promise;
  expect(placesAt(upstream).count).toBe(0);
  return { ends: [typeof result === "string" ? result : result.kind], probed };
}

test("a probe is a small streamed request, and counts as answered at the end of the stream", async () => {
  const server = serve(pong);
  expect((await probe(server.url)).ends).toEqual(["answered"]);
  expect(server.seen[0]).toMatchObject({
    model: "m",
    stream: true,
    max_tokens: 16,
    messages: [{ role: "user", content: "ping" }],
  });
});

test("an embedding model is probed with one word", async () => {
  const vector = { object: "embedding", index: 0, embedding: [0.1, 0.2] };
  const server = serve(() => Response.json({ object: "list", data: [vector], model: "m" }));
  const model = { kind: "embedding" as const };
  expect((await probe(server.url, { model })).ends).toEqual(["answered"]);
  expect(server.seen[0]).toMatchObject({ input: "ping" });
});

test("a target that is out has to answer twice", async () => {
  const server = serve(pong);
  const { probed } = await probe(server.url);
  expect(probed).toEqual(["answered", "answered"]);
  let asked = 0;
  const flaky = serve(() => (asked++ === 0 ? pong() : new Response("", { status: 503 })));
  const failed = await probe(flaky.url);
  expect(failed).toEqual({ ends: ["overloaded"], probed: ["answered", "overloaded"] });
});

test("an answer may take long after its first event", async () => {
  const server = serve(
    () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            const send = (frame: string): void =>
              controller.enqueue(new TextEncoder().encode(`data: ${frame}\n\n`));
            send(chunk({ content: "p" }));
            await Bun.sleep(900);
            send(chunk({}, "stop"));
            send("[DONE]");
            controller.close();
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  );
  expect((await probe(server.url)).ends).toEqual(["answered"]);
});

test("a stream that breaks off is a failure", async () => {
  const server = serve(() => stream(chunk({ content: "po" })));
  expect((await probe(server.url)).ends).toEqual(["broken-answer"]);
});

test("a probe without an answer times out, and its connection is closed", async () => {
  const closed = Promise.withResolvers<void>();
  const hanging = Bun.serve({
    port: 0,
    fetch(request) {
      request.signal.addEventListener("abort", () => closed.resolve());
      return new Promise<Response>(() => undefined);
    },
  });
  servers.push(hanging);
  expect((await probe(`http://127.0.0.1:${hanging.port}`)).ends).toEqual(["timed-out"]);
  await closed.promise;
});

test("a stream that stalls fails within the timeout of the probe", async () => {
  const server = serve(
    () =>
      new Response(
        new ReadableStream({
          start: (controller) =>
            controller.enqueue(new TextEncoder().encode(`data: ${chunk({ content: "p" })}\n\n`)),
        }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  );
  expect((await probe(server.url)).ends).toEqual(["timed-out"]);
});

test("a stale credential is replaced once; the fresh one that is refused too is a bad one", async () => {
  let asked = 0;
  const encodeStream = (): never => {
    asked += 1;
    throw new UpstreamFailure({ kind: "stale-credential", message: "" });
  };
  const { ends, probed } = await probe("http://127.0.0.1:1", { chat: { encodeStream } });
  expect([asked, ends, probed]).toEqual([2, ["bad-credential"], ["bad-credential"]]);
});
