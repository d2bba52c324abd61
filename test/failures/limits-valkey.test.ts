import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { refusalSchema } from "../../src/control/contract/refusals.ts";
import { statusSchema } from "../../src/control/contract/processes.ts";
import { eventually } from "./outage-gateway.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";

const limits = { requestsPerMinute: 20, tokensPerMinute: 1_000_000 };
const ask = { model: "chat-model", messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };

describeWithValkey(() => {
  test.each([1, 2])(
    "a gateway of %d processes keeps its limits in the server",
    async (processes) => {
      await using server = await startValkey();
      await using gateway = await startGateway({
        processes,
        sections: {
          limits: `{ store: "${server.url}", timeout: 5s }`,
          plans:
            "{ enterprise: { custom: true }, strict: { custom: true, when_limits_unavailable: closed } }",
        },
        key: { limits },
      });
      expect(await admittedOf(gateway, 60)).toBe(20);
      const refused = await gateway.post("/v1/chat/completions", ask);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      const strict = await gateway.createKey({ plan: "strict", limits });
      const other = await gateway.createKey({ limits, application: "other" });

      await server.kill();
      while (!(await isDegraded(gateway))) await Bun.sleep(20);
      // Each process grants at most its share, less what it has admitted before.
      const alone = await admittedOf(gateway, 60);
      expect(alone).toBeLessThanOrEqual(20 - Math.floor(20 / processes));
      await expectClosed(gateway, strict.text);
      expect(await statusOf(gateway, other.text)).toBe(200);
      await expectTold(gateway);

      await server.start();
      await eventually("it answers, and does not decide", () =>
        gateway.log.some((line) => line.includes("it has lost its data, or is new")),
      );
      // The server has lost everything, and the processes have not.
      expect(20 + alone + (await admittedOf(gateway, 60))).toBeLessThanOrEqual(40 - 20 / processes);
      expect(await statusOf(gateway)).toBe(429);
      expect(await statusOf(gateway, strict.text)).toBe(503);
      expect(await statusOf(gateway, other.text)).toBe(200);
    },
  );
});

describeWithValkey(() => {
  test("a server that starts with an older snapshot does not decide", async () => {
    await using server = await startValkey();
    await using gateway = await startGateway({
      processes: 2,
      sections: {
        limits: `{ store: "${server.url}", timeout: 5s }`,
        plans: "{ enterprise: { custom: true } }",
      },
      key: { limits },
    });
    expect(await admittedOf(gateway, 6)).toBe(6);
    await server.command("SAVE");
    expect(await admittedOf(gateway, 60)).toBe(14);
    await server.kill();
    while (!(await isDegraded(gateway))) await Bun.sleep(20);
    await server.start();
    await eventually("it is found out", () =>
      gateway.log.some((line) => line.includes("it has lost its data, or is new")),
    );
    // Each process may get to its share, however the calls came to them.
    expect(await admittedOf(gateway, 60)).toBeLessThanOrEqual(10);
    expect(await statusOf(gateway)).toBe(429);
  });
});

describeWithValkey(() => {
  test("the log says why the server cannot be used, at the start and when the reason changes", async () => {
    const password = ["--requirepass", "hidden-one"];
    await using server = await startValkey(["--requirepass", "another"]);
    const url = server.url.replace("//", "//:hidden-one@");
    await using gateway = await startGateway({
      sections: { limits: `{ store: "${url}", timeout: 5s }` },
      key: { limits },
    });
    const told = (reason: string): Promise<void> =>
      eventually(reason, () => gateway.log.some((line) => line.includes(`"reason":"${reason}`)));
    await told("WRONGPASS");
    await server.kill();
    await told("the connection was refused");
    await server.start(password);
    await told("it has lost its data, or is new");
    expect(gateway.log.join("\n")).not.toContain("hidden-one");
  });
});

/** A refusal of a plan that grants nothing alone is explained, counted and logged. */
async function expectClosed(gateway: TestGateway, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  const refused = await gateway.post("/v1/chat/completions", ask, { headers });
  await refused.text();
  const id = refused.headers.get("x-request-id") ?? "";
  expect(refused.status).toBe(503);
  const path = `/admin/v1/refusals/${id}`;
  await eventually("the refusal is known", async () => (await gateway.admin("GET", path)).ok);
  const refusal = refusalSchema.parse(await (await gateway.admin("GET", path)).json());
  expect(refusal.rule).toBe("limits_unavailable");
  expect(refusal.key_id).toStartWith("key_");
  expect(gateway.log.find((line) => line.includes(id))).toContain('"rule":"limits_unavailable"');
  const page = await metricsOf(gateway.adminUrl);
  expect(page).toMatch(/^sluice_refusals_total\{rule="limits_unavailable"\} 1$/m);
}

/** Balancers go on sending calls; operators see what is missing. */
async function expectTold(gateway: TestGateway): Promise<void> {
  const lack = "limits.store does not answer; limits are not shared";
  expect(await (await fetch(`${gateway.url}/readyz`)).text()).toBe("ready\n");
  const degraded = `ready, degraded: ${lack}\n`;
  await eventually("operators see it", async () => (await readinessOf(gateway)) === degraded);
  await eventually("each process says so", async () => {
    const answer = await gateway.admin("GET", "/admin/v1/status");
    const { data } = statusSchema.parse(await answer.json());
    return data.every(({ ready, degraded }) => ready && degraded === lack);
  });
}

async function readinessOf({ adminUrl }: TestGateway): Promise<string> {
  return (await fetch(`${adminUrl}/readyz`)).text();
}

async function statusOf(gateway: TestGateway, key = gateway.key): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post("/v1/chat/completions", ask, { headers });
  await response.text();
  return response.status;
}

/** How many of these calls at once are admitted; all others are refused by a limit. */
async function admittedOf(gateway: TestGateway, calls: number): Promise<number> {
  const statuses = await Promise.all(Array.from({ length: calls }, () => statusOf(gateway)));
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return statuses.filter((status) => status === 200).length;
}

async function isDegraded({ adminUrl }: TestGateway): Promise<boolean> {
  const page = await metricsOf(adminUrl);
  return /^sluice_limits_degraded\S* 1$/m.test(page);
}
