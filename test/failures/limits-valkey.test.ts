import { expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";

const limits = { requestsPerMinute: 20, tokensPerMinute: 1_000_000 };
const ask = { model: "chat-model", messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };

describeWithValkey(() => {
  test.each([1, 2])("a gateway of %d workers keeps its limits in the server", async (workers) => {
    await using server = await startValkey();
    await using gateway = await startGateway({
      workers,
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
    // Each worker grants at most its share, less what it has admitted before.
    const alone = await admittedOf(gateway, 60);
    expect(alone).toBeLessThanOrEqual(20 - Math.floor(20 / workers));
    expect(await statusOf(gateway, strict.text)).toBe(503);
    expect(await statusOf(gateway, other.text)).toBe(200);

    await server.start();
    while (await isDegraded(gateway)) await Bun.sleep(20);
    // The server has lost everything, and the workers have not.
    expect(20 + alone + (await admittedOf(gateway, 60))).toBeLessThanOrEqual(2 * 20);
    expect(await statusOf(gateway)).toBe(429);
    expect(await statusOf(gateway, strict.text)).toBe(200);
  });
});

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
  const page = await (await fetch(`${adminUrl}/metrics`)).text();
  return /^sluice_limits_degraded\S* 1$/m.test(page);
}
