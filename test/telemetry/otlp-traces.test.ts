import { afterAll, expect, test } from "bun:test";
import { startSimulator } from "../../simulator/simulator.ts";
import { startGateway } from "../support/gateway.ts";
import { startOtlpReceiver, type ReceivedSpan } from "../support/otlp-receiver.ts";
import { until } from "../support/until.ts";

const hello = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };
const traceId = "0af7651916cd43dd8448eb211c80319c";
const callerSpanId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${callerSpanId}-01`;

function otlp(url: string, more = ""): Record<string, string> {
  return {
    telemetry: `{ log_level: debug, log_format: json, otlp: { endpoint: "${url}"${more} } }`,
  };
}

const receiver = startOtlpReceiver();
afterAll(() => receiver[Symbol.asyncDispose]());

/** The spans of a call, once they have all been received. */
async function traceOf(response: Response): Promise<readonly ReceivedSpan[]> {
  await response.text();
  const id = response.headers.get("x-request-id");
  const root = (): ReceivedSpan | undefined =>
    receiver.spans.find(({ attributes }) => attributes["sluice.request.id"] === id);
  await until(() => root() !== undefined);
  const { spanId } = root() ?? {};
  return receiver.spans.filter((span) => [span.spanId, span.parentSpanId].includes(spanId));
}

test("a call has a span, with its admission and its attempt below it", async () => {
  await using gateway = await startGateway({ sections: otlp(receiver.url) });
  const response = await gateway.post("/v1/chat/completions", hello, {
    headers: { traceparent, tracestate: "vendor=1" },
  });
  const [call, admission, attempt, ...rest] = await traceOf(response);
  expect(rest).toEqual([]);
  expect(call).toMatchObject({
    traceId,
    parentSpanId: callerSpanId,
    traceState: "vendor=1",
    name: "POST /v1/chat/completions",
    kind: "SPAN_KIND_SERVER",
  });
  expect(call?.attributes).toMatchObject({
    "http.request.method": "POST",
    "http.route": "/v1/chat/completions",
    "http.response.status_code": 200,
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "chat-model",
    "gen_ai.request.stream": false,
    "sluice.request.id": response.headers.get("x-request-id"),
    "sluice.application": "test-application",
    "sluice.outcome": "completed",
  });
  expect(admission).toMatchObject({
    name: "admission",
    kind: "SPAN_KIND_INTERNAL",
    parentSpanId: call?.spanId,
  });
  expect(attempt).toMatchObject({
    name: "chat simulated-chat",
    kind: "SPAN_KIND_CLIENT",
    parentSpanId: call?.spanId,
  });
  const [row] = await gateway.usage();
  const { port } = new URL(gateway.simulator.url);
  expect(attempt?.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "simulated-chat",
    "server.address": "127.0.0.1",
    "server.port": Number(port),
    "gen_ai.usage.input_tokens": row?.inputTokens,
    "gen_ai.usage.output_tokens": row?.outputTokens,
  });
  expect(receiver.resource).toMatchObject({ "service.name": "sluice" });
});

test("a streamed call has an event at its first token", async () => {
  await using gateway = await startGateway({ sections: otlp(receiver.url) });
  const response = await gateway.post("/v1/chat/completions", { ...hello, stream: true });
  const [call, , attempt] = await traceOf(response);
  expect(call?.parentSpanId ?? "").toBe("");
  expect(attempt?.events.map(({ name }) => name)).toEqual(["first event"]);
  expect(attempt?.attributes["gen_ai.response.time_to_first_chunk"]).toBeGreaterThan(0);
  const at = attempt?.events[0]?.timeUnixNano ?? 0n;
  expect(at).toBeGreaterThanOrEqual(attempt?.startTimeUnixNano ?? 0n);
  expect(at).toBeLessThanOrEqual(attempt?.endTimeUnixNano ?? 0n);
});

/** An upstream that fails every request, and the trace contexts that it got. */
function startBroken() {
  const contexts: (string | null)[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ headers }) {
      contexts.push(headers.get("traceparent"));
      return Response.json({ error: { message: "broken" } }, { status: 500 });
    },
  });
  return { contexts, url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) };
}

test("a failed attempt and the one after it are spans, which their upstreams continue", async () => {
  const broken = startBroken();
  const good = startSimulator();
  await using gateway = await startGateway({
    sections: {
      ...otlp(receiver.url),
      upstreams: `
  broken: { kind: openai, base_url: "${broken.url}" }
  simulator: { kind: openai, base_url: "${good.url}" }`,
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets:
      - { model: simulated-chat, upstream: broken, priority: 1 }
      - { model: simulated-chat, upstream: simulator, priority: 2 }`,
    },
  });
  const response = await gateway.post("/v1/chat/completions", hello);
  expect(response.status).toBe(200);
  const [call, , failed, served] = await traceOf(response);
  expect(failed?.attributes).toMatchObject({
    "error.type": "unavailable",
    "http.response.status_code": 500,
    "sluice.target": "broken/simulated-chat",
  });
  expect(failed?.status?.code).toBe("STATUS_CODE_ERROR");
  expect(served?.attributes["sluice.target"]).toBe("simulator/simulated-chat");
  expect(served?.attributes["error.type"]).toBeUndefined();
  expect(broken.contexts).toEqual([`00-${call?.traceId}-${failed?.spanId}-01`]);
  await broken.stop();
  await good[Symbol.asyncDispose]();
});

test("of calls outside the share, only failed and slow ones are sent", async () => {
  const broken = startBroken();
  await using gateway = await startGateway({
    simulator: { firstTokenDelayMs: 20 },
    sections: {
      ...otlp(receiver.url, ", sample_ratio: 0"),
      upstreams: `
  broken: { kind: openai, base_url: "${broken.url}" }
  simulator: { kind: openai, base_url: "${broken.url}" }`,
    },
  });
  const failing = await gateway.post("/v1/chat/completions", hello, { headers: { traceparent } });
  expect(failing.status).toBe(503);
  const [call] = await traceOf(failing);
  expect(call?.attributes["error.type"]).toBe("model_unavailable");
  expect(call?.status?.code).toBe("STATUS_CODE_ERROR");
  // The flag says that the caller's trace is sampled, which is not trusted here.
  expect(broken.contexts[0]).toEndWith("-00");
  const before = receiver.spans.length;
  await gateway.reconfigure({
    ...otlp(receiver.url, ", sample_ratio: 0, slow_call: 1ms"),
    upstreams: `\n  simulator: { kind: openai, base_url: "${gateway.simulator.url}" }`,
  });
  await traceOf(await gateway.post("/v1/chat/completions", hello));
  const after = receiver.spans.length;
  expect(after).toBeGreaterThan(before);
  await gateway.reconfigure({
    ...otlp(receiver.url, ", sample_ratio: 0"),
    upstreams: `\n  simulator: { kind: openai, base_url: "${gateway.simulator.url}" }`,
  });
  await (await gateway.post("/v1/chat/completions", hello)).text();
  await gateway[Symbol.asyncDispose]();
  expect(receiver.spans).toHaveLength(after);
  await broken.stop();
});

test("the caller's sampled flag decides if the operator trusts it", async () => {
  const settings = otlp(receiver.url, ", sample_ratio: 0, trust_caller: true");
  await using gateway = await startGateway({ sections: settings });
  const sampled = await gateway.post("/v1/chat/completions", hello, { headers: { traceparent } });
  expect(await traceOf(sampled)).not.toEqual([]);
  const before = receiver.spans.length;
  const headers = { traceparent: `00-${traceId}-${callerSpanId}-00` };
  await (await gateway.post("/v1/chat/completions", hello, { headers })).text();
  await (await gateway.post("/v1/chat/completions", hello)).text();
  await gateway[Symbol.asyncDispose]();
  expect(receiver.spans).toHaveLength(before);
});

test("a refused call has a span with the rule, and no attempt", async () => {
  const plans = "{ tiny: { requests_per_minute: 10, tokens_per_minute: 2000 } }";
  await using gateway = await startGateway({ sections: { ...otlp(receiver.url), plans } });
  const { text: key } = await gateway.createKey({ plan: "tiny" });
  const long = { ...hello, messages: [{ role: "user", content: "word ".repeat(20_000) }] };
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post("/v1/chat/completions", long, { headers });
  expect(response.status).toBe(429);
  const [call, admission, ...rest] = await traceOf(response);
  expect(rest).toEqual([]);
  expect(call?.attributes["http.response.status_code"]).toBe(429);
  expect(call?.attributes["error.type"]).toBeUndefined();
  expect(admission?.attributes["sluice.refusal.rule"]).toBe(
    call?.attributes["sluice.refusal.rule"],
  );
  expect(call?.attributes["sluice.refusal.rule"]).toBeString();
});

test("a call that waited for a place has a span of the wait", async () => {
  await using gateway = await startGateway({
    simulator: { firstTokenDelayMs: 150 },
    sections: {
      ...otlp(receiver.url),
      pools: "{ small: { tokens_per_minute: 100000, max_in_flight: 1 } }",
      plans:
        "{ patient: { requests_per_minute: 1000, tokens_per_minute: 1000000, queue_timeout: 60s } }",
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ model: simulated-chat, upstream: simulator, pool: small }]`,
    },
  });
  const { text: key } = await gateway.createKey({ plan: "patient" });
  const headers = { authorization: `Bearer ${key}` };
  const call = () => gateway.post("/v1/chat/completions", hello, { headers });
  const traces = await Promise.all([call(), call()].map(async (sent) => traceOf(await sent)));
  const queued = traces.flat().filter(({ name }) => name === "queue");
  expect(queued).toHaveLength(1);
  expect(queued[0]?.kind).toBe("SPAN_KIND_INTERNAL");
});

test("no prompt, answer, key or header of a collector is in what is sent or logged", async () => {
  const settings = otlp(receiver.url, `, headers: { authorization: "Bearer collector-secret" }`);
  await using gateway = await startGateway({ sections: settings });
  const prompt = { ...hello, messages: [{ role: "user", content: "canary-prompt" }] };
  const spans = await traceOf(await gateway.post("/v1/chat/completions", prompt));
  expect(receiver.headers.at(-1)?.get("authorization")).toBe("Bearer collector-secret");
  const sent = JSON.stringify(spans, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  for (const secret of ["canary", gateway.key, "collector-secret"]) {
    expect(sent).not.toContain(secret);
    expect(gateway.log.join("\n")).not.toContain(secret);
  }
});
