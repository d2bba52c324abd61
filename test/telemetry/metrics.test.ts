import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, expect, test } from "bun:test";
import packageJson from "../../package.json" with { type: "json" };
import { commitOfCheckout } from "../../src/process/program.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const models = `
  sound: { kind: chat, context_window: 200000, targets: [{ model: sound, upstream: simulator }] }
  failing: { kind: chat, context_window: 200000, targets: [
    { model: fault-error-500, upstream: simulator, priority: 1 },
    { model: spare, upstream: simulator, priority: 2 } ] }
  refused: { kind: chat, context_window: 200000, targets: [
    { model: fault-bad-request-400, upstream: simulator }] }`;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: { models },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

async function call(model: string, init = {}): Promise<number> {
  const body = { model, messages: [{ role: "user", content: "Hello" }] };
  const answer = await gateway.post("/v1/chat/completions", body, init);
  await answer.arrayBuffer();
  return answer.status;
}

/** Value of a sample; undefined when there is none. */
async function read(sample: string): Promise<number | undefined> {
  await gateway.usage();
  const page = await metricsOf(gateway.adminUrl);
  const line = page.split("\n").find((each) => each.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length));
}

test("attempts are counted by target and outcome, with their times", async () => {
  expect([await call("sound"), await call("failing"), await call("refused")]).toEqual([
    200, 200, 400,
  ]);
  const attempts = (target: string, outcome: string) =>
    read(`sluice_attempts_total{target="simulator/${target}",outcome="${outcome}"}`);
  expect(await attempts("sound", "answered")).toBe(1);
  expect(await attempts("spare", "answered")).toBe(1);
  expect(await attempts("fault-error-500", "unavailable")).toBeGreaterThan(0);
  expect(await attempts("fault-bad-request-400", "invalid-request")).toBe(1);
  const times = (target: string, result: string) =>
    read(`sluice_attempt_duration_seconds_count{target="simulator/${target}",result="${result}"}`);
  expect(await times("spare", "answered")).toBe(1);
  expect(await times("fault-error-500", "failed")).toBe(
    await attempts("fault-error-500", "unavailable"),
  );
});

test("requests are counted by key, calls and others alike", async () => {
  const { id, text } = await gateway.createKey();
  const headers = { authorization: `Bearer ${text}` };
  expect(await call("sound", { headers })).toBe(200);
  expect(await call("unknown", { headers })).toBe(400);
  await gateway.get("/v1/models", { headers });
  const requests = (answer: string) =>
    read(`sluice_key_requests_total{key="${id}",answer="${answer}"}`);
  expect(await requests("ok")).toBe(2);
  expect(await requests("refused")).toBe(1);
});

test("the page tells the version, and what each process uses", async () => {
  const labels = `version="${packageJson.version}",commit="${commitOfCheckout()}",runtime="bun-${Bun.version}"`;
  expect(await read(`sluice_build_info{${labels}}`)).toBe(1);
  for (const name of ["cpu_seconds_total", "resident_memory_bytes", "start_time_seconds"]) {
    expect(await read(`process_${name}`), name).toBeGreaterThan(0);
  }
});
