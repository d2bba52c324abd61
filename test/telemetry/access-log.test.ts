import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const lineSchema = z.looseObject({ level: z.string(), message: z.string(), id: z.string() });
type Line = z.infer<typeof lineSchema>;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: { telemetry: "{ log_level: info, log_format: json }" },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const hello = { model: "chat-model", messages: [{ role: "user", content: "echo: Hello there" }] };
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** Lines about the request of an answer that was read to its end. */
async function linesOf(answer: Response): Promise<readonly Line[]> {
  await answer.arrayBuffer();
  const id = answer.headers.get("x-request-id") ?? "";
  await gateway.usage();
  return gateway.log
    .filter((line) => line.includes(`"${id}"`))
    .map((line) => lineSchema.parse(JSON.parse(line)));
}

test("a call has one line, with its request, its key, its target, its tokens and its times", async () => {
  const answer = await gateway.post("/v1/chat/completions", hello);
  const id = answer.headers.get("x-request-id");
  const lines = await linesOf(answer);
  const [row] = (await gateway.usage()).filter((each) => each.id === id);
  expect(lines).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      level: "info",
      message: "call",
      id: id ?? "",
      method: "POST",
      route: "/v1/chat/completions",
      status: 200,
      outcome: "completed",
      application: "test-application",
      keyId: row?.keyId,
      model: "chat-model",
      dialect: "chat",
      target: "simulator/simulated-chat",
      capacityClass: "on-demand",
      inputTokens: row?.inputTokens,
      outputTokens: row?.outputTokens,
      attempts: 1,
      isStreamed: false,
      firstEventMs: expect.any(Number),
      durationMs: expect.any(Number),
    },
  ]);
});

test("a stream has one line, once it has ended", async () => {
  const answer = await gateway.post("/v1/chat/completions", { ...hello, stream: true });
  const [line, ...others] = await linesOf(answer);
  expect(others).toEqual([]);
  expect(line).toMatchObject({ message: "call", isStreamed: true, outcome: "completed" });
  expect(line).toHaveProperty("firstEventMs");
});

test("a call that fails has one line with its code", async () => {
  const answer = await gateway.post("/v1/chat/completions", {
    ...hello,
    messages: [{ role: "user", content: "word ".repeat(400_000) }],
  });
  expect(answer.status).toBe(400);
  expect(await linesOf(answer)).toMatchObject([
    { message: "call", status: 400, code: "context_length_exceeded", outcome: "failed" },
  ]);
});

test("requests of the API that are no calls have one line, too", async () => {
  const models = await gateway.get("/v1/models");
  expect(await linesOf(models)).toMatchObject([
    { level: "info", message: "request", method: "GET", route: "/v1/models", status: 200 },
  ]);
  const refused = await gateway.post("/v1/chat/completions", { model: "chat-model" });
  const [line] = await linesOf(refused);
  expect(line).toMatchObject({ message: "request", route: "/v1/chat/completions", status: 400 });
  expect(line?.["keyId"]).toBeString();
  const unknown = await gateway.get("/v2/models");
  expect(await linesOf(unknown)).toMatchObject([
    { message: "request", route: "other", status: 404 },
  ]);
});

test("a request beyond the plan has one line, with the rule and the application", async () => {
  const limits = { requestsPerMinute: 1, tokensPerMinute: 1_000_000 };
  const { id, text } = await gateway.createKey({ plan: "enterprise", limits });
  const headers = { authorization: `Bearer ${text}` };
  await linesOf(await gateway.post("/v1/chat/completions", hello, { headers }));
  const refused = await gateway.post("/v1/chat/completions", hello, { headers });
  expect(await linesOf(refused)).toMatchObject([
    {
      message: "request",
      status: 429,
      code: "rate_limit_exceeded",
      rule: "requests_per_minute",
      application: expect.any(String),
      keyId: id,
    },
  ]);
});

test("health, metrics and the control plane have no lines", async () => {
  const before = gateway.log.length;
  await gateway.get("/healthz");
  await fetch(`${gateway.adminUrl}/metrics`);
  await gateway.admin("GET", "/admin/v1/accounts");
  expect(gateway.log.slice(before)).toEqual([]);
});

test("refusals of a flood beyond those that get an answer of their own have no line", async () => {
  const before = gateway.log.length;
  const headers = { authorization: "Bearer sk-wrong" };
  const asked = Array.from({ length: 300 }, () => gateway.get("/v1/models", { headers }));
  const answers = await Promise.all(asked);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  const page = await metricsOf(gateway.adminUrl);
  const repeated = Number(/sluice_repeated_refusals_total\{of="address"\} (\d+)/.exec(page)?.[1]);
  expect(repeated).toBeGreaterThan(0);
  const lines = gateway.log.slice(before).filter((line) => line.includes('"status":401'));
  expect(lines).toHaveLength(answers.length - repeated);
});

test("the caller's own id and its trace context stand in the line, beside the gateway's id", async () => {
  const headers = { "x-request-id": "job-7", traceparent };
  const answers = [
    await gateway.post("/v1/chat/completions", hello, { headers }),
    await gateway.get("/v1/models", { headers }),
  ];
  for (const answer of answers) {
    expect(answer.headers.get("x-request-id")).toStartWith("req_");
    expect(await linesOf(answer)).toMatchObject([{ callerRequestId: "job-7", traceparent }]);
  }
});

test("an id that is no id, and a trace context that is not valid, are in no line", async () => {
  const headers = { "x-request-id": "tell me a secret", traceparent: "00-1-1-01" };
  const [line] = await linesOf(await gateway.post("/v1/chat/completions", hello, { headers }));
  expect(line?.message).toBe("call");
  expect(line).not.toHaveProperty("callerRequestId");
  expect(line).not.toHaveProperty("traceparent");
});

test("with access_log off, the lines are written at debug only", async () => {
  const off = "access_log: false, log_format: json";
  for (const level of ["info", "debug"]) {
    await using quiet = await startGateway({
      sections: { telemetry: `{ log_level: ${level}, ${off} }` },
    });
    await (await quiet.post("/v1/chat/completions", hello)).arrayBuffer();
    await quiet.usage();
    const lines = quiet.log.filter((line) => line.includes('"message":"call"'));
    expect(lines).toHaveLength(level === "debug" ? 1 : 0);
  }
});
