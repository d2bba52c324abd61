import { expect, test } from "bun:test";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { workerOf, workersOf } from "../support/sluice-process.ts";

test("calls are refused soon while control is stopped, and served again once it is replaced", async () => {
  await using bench = await ProcessBench.create({ keys: 1, sections: { workers: "2" } });
  await using serving = await bench.serve();
  const call = async (): Promise<Response> => {
    const messages = [{ role: "user", content: "count: 1" }];
    const body = { model: "chat-openai", messages };
    return bench.fetch(serving, { path: "/v1/chat/completions", body });
  };
  await until("calls are served", async () => (await call()).status === 200);
  const { controlPid } = serving;
  process.kill(controlPid, "SIGSTOP");
  const refused = await call();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await refused.json()).toMatchObject({ error: { code: "model_unavailable" } });
  await until("calls are served again", async () => {
    const { status } = await call();
    expect([200, 503]).toContain(status);
    return status === 200;
  });
  await until("another control process runs", () => serving.controlPid !== controlPid);
  expect(serving.text()).toContain("control does not answer: calls");
  expect(serving.text()).toContain("control does not answer and is ended");
}, 120_000);

test("calls are served again once control goes on", async () => {
  await using bench = await ProcessBench.create({ keys: 1, sections: { workers: "2" } });
  await using serving = await bench.serve();
  const call = async (): Promise<number> => {
    const messages = [{ role: "user", content: "count: 1" }];
    const body = { model: "chat-openai", messages };
    return (await bench.fetch(serving, { path: "/v1/chat/completions", body })).status;
  };
  await until("calls are served", async () => (await call()) === 200);
  process.kill(serving.controlPid, "SIGSTOP");
  expect(await call()).toBe(503);
  process.kill(serving.controlPid, "SIGCONT");
  await until("calls are served again", async () => (await call()) === 200);
  await until("that is reported", () => serving.text().includes("control answers again"));
  const rule = /^sluice_refusals_total\{rule="limits_unavailable"\} [1-9]/m;
  await until("the refusal has a rule", async () => {
    const metrics = await fetch(`${serving.adminUrl}/metrics`);
    return rule.test(await metrics.text());
  });
}, 120_000);

test("a worker that does not answer is replaced, and then all connections are served", async () => {
  await using bench = await ProcessBench.create({ keys: 1, sections: { workers: "2" } });
  await using serving = await bench.serve();
  await until("both workers run", () => workersOf(serving.pid).length === 2);
  const { workerPid } = serving;
  process.kill(workerPid, "SIGSTOP");
  await until("another worker runs", () => ![undefined, workerPid].includes(workerOf(serving.pid)));
  expect(serving.text()).toContain("a worker does not answer and is ended");
}, 120_000);
