import { expect, test } from "bun:test";
import { z } from "zod";
import { zeroGauges } from "../../../../test/support/zero-gauges.ts";
import {
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../test/support/valkey-server.ts";
import { systemClock } from "../../../domain/clock.ts";
import { Secret } from "../../../domain/keys/secret.ts";
import { minuteScopes } from "../../../domain/limits/limit-scope.ts";
import { noLog } from "../../../telemetry/log/log-output.ts";
import { createTelemetry, type Telemetry } from "../../../telemetry/telemetry.ts";
import { openValkeyLimits } from "./open-valkey-limits.ts";
import type { SharedLimitStore } from "./shared-limit-store.ts";

const limit = 60;
const stores = 6;
const fleet = "sluice:{workers}";
const scopes = minuteScopes(
  "key",
  { requestsPerMinute: limit, tokensPerMinute: 1_000_000 },
  { owner: "account" },
);

describeWithValkey(() => {
  test("however often the server loses its data, a key gets less than twice its limit", async () => {
    await using server = await startValkey();
    await using workers = await startWorkers(server);
    for (const worker of workers.all) await admittedBy(worker, 1);
    let admitted = stores;
    for (const worker of workers.all) {
      await server.command("FLUSHALL");
      // Only one of them is asked after each loss.
      admitted += await admittedBy(worker, 2 * limit);
    }
    expect(admitted).toBeLessThan(2 * limit);
    await workers.untilShared();
    expect(await admittedBy(workers.all[0], 2 * limit)).toBe(Math.max(0, limit - admitted));
  });

  test("however often the server is restarted empty, a key gets less than twice its limit", async () => {
    await using server = await startValkey();
    await using workers = await startWorkers(server);
    for (const worker of workers.all) await admittedBy(worker, 1);
    let admitted = stores;
    for (const worker of workers.all) {
      await server.kill();
      await workers.until(() => !workers.isAnyUp);
      await server.start();
      // Some workers are connected by then.
      await Bun.sleep(500);
      admitted += await admittedBy(worker, 2 * limit);
    }
    expect(admitted).toBeLessThan(2 * limit);
    await workers.untilShared();
    expect(await admittedBy(workers.all[0], 2 * limit)).toBe(Math.max(0, limit - admitted));
  });

  test("a server that has just lost its data makes no share larger when it is lost again", async () => {
    await using server = await startValkey();
    await using workers = await startWorkers(server);
    await server.command("FLUSHALL");
    // The first reports after the loss, of which the server has heard no others.
    await workers.until(async () => (await server.command("ZCARD", fleet)) !== 0);
    await server.kill();
    await workers.until(() => !workers.isAnyUp);
    let admitted = 0;
    for (const worker of workers.all) admitted += await admittedBy(worker, limit);
    expect(admitted).toBe(limit);
  });
});

async function startWorkers(server: ValkeyServer) {
  const all: { readonly limits: SharedLimitStore; readonly telemetry: Telemetry }[] = [];
  while (all.length < stores) {
    const telemetry = newTelemetry();
    const store = {
      name: "valkey",
      url: new Secret(server.url),
      timeoutMs: 5_000,
      authorities: undefined,
    };
    const parts = { clock: systemClock, random: Math.random, telemetry, ownWorkers: 1 };
    const limits = openValkeyLimits(store, parts);
    await limits.start();
    all.push({ limits, telemetry });
  }
  const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await holds())) await Bun.sleep(10);
  };
  const degraded = (): number =>
    all.filter(({ telemetry }) => /^sluice_limits_degraded\S* 1$/m.test(telemetry.metrics.render()))
      .length;
  // After two reports each, all know of all.
  for (let report = 0; report < 2; report += 1) {
    const [seconds] = z.array(z.coerce.number()).parse(await server.command("TIME"));
    await until(async () => {
      const since = `(${1_000 * ((seconds ?? 0) + 1)}`;
      return (await server.command("ZCOUNT", fleet, since, "+inf")) === stores;
    });
  }
  await until(() => degraded() === 0);
  return {
    all: all.map(({ limits }) => limits),
    until,
    get isAnyUp(): boolean {
      return degraded() < stores;
    },
    untilShared: () => until(() => degraded() === 0),
    async [Symbol.asyncDispose](): Promise<void> {
      for (const { limits } of all) await limits.close();
    },
  };
}

function newTelemetry(): Telemetry {
  return createTelemetry({
    level: "error",
    format: "json",
    logsUpstreamMessages: false,
    logsAccess: false,
    clock: systemClock,
    log: noLog,
    worker: "1",
    logBufferBytes: 1_000,
    gauges: zeroGauges,
  });
}

let calls = 0;

async function admittedBy(limits: SharedLimitStore | undefined, requests: number): Promise<number> {
  if (limits === undefined) throw new Error("there is no such worker");
  const decisions = await Promise.all(
    Array.from({ length: requests }, async () =>
      limits.acquire({ callId: `call ${(calls += 1)}`, scopes, tokens: 1 }),
    ),
  );
  return decisions.filter(({ isAdmitted }) => isAdmitted).length;
}
