import { afterEach, expect, test } from "bun:test";
import { ManualTimers } from "../../../../../test/support/manual-timers.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
} from "../../../../../test/support/valkey-server.ts";
import type { ValkeyServer } from "../../../../../test/support/valkey-server.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { Fleet } from "./fleet.ts";

describeWithValkey(() => {
  const ending: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const end of ending.splice(0).toReversed()) await end();
  });

  async function join(server: ValkeyServer, worker: string) {
    const clock = Object.assign(new ManualTimers(), { monotonic: () => 0 });
    const connection = await connectTo(server);
    ending.push(() => connection.close());
    const noted = { lost: 0 };
    const onLoss = (): void => void (noted.lost += 1);
    const fleet = new Fleet({ connection, clock, worker, ownWorkers: 1, onLoss });
    await fleet.start();
    return Object.assign(noted, {
      fleet,
      connection,
      /** The worker's next report has been answered. */
      async report(): Promise<void> {
        clock.advance(1_000);
        // Answers come in the order of the questions, and the next report is planned then.
        await connection.send("any", "PING", []);
        await Bun.sleep(1);
      },
    });
  }

  test("a worker that joins counts at once, everywhere", async () => {
    await using server = await startValkey();
    const one = await join(server, "a");
    while (Number(await listeners(server)) < 1) await Bun.sleep(5);
    const other = await join(server, "b");
    expect(other.fleet).toMatchObject({ workers: 2, number: 2 });
    while (one.fleet.workers < 2) await Bun.sleep(5);
    expect(one.fleet.number).toBe(1);
  });

  test("a server that has lost its data does not make the others fewer", async () => {
    await using server = await startValkey();
    const one = await join(server, "a");
    const other = await join(server, "b");
    await one.report();
    await server.command("FLUSHALL");
    await one.report();
    expect(one.fleet.workers).toBe(2);
    await other.report();
    for (let reports = 0; reports < 30; reports += 1) {
      await one.report();
      await other.report();
      expect([one.fleet.workers, other.fleet.workers]).toEqual([2, 2]);
    }
  });

  test("a server that starts with an older snapshot has lost its memory", async () => {
    await using server = await startValkey();
    const one = await join(server, "a");
    const other = await join(server, "b");
    await one.report();
    await server.command("SAVE");
    await other.report();
    const { validSince } = one.fleet;
    expect(other.fleet.validSince).toBe(validSince);
    await restart(server, [one, other]);
    // It has all reports of this one.
    await one.report();
    expect(one.fleet.validSince).toBe(validSince);
    await other.report();
    expect(other.fleet.validSince).toBeGreaterThan(validSince);
    expect([one.lost, other.lost]).toEqual([0, 1]);
    await one.report();
    expect(one.fleet.validSince).toBe(other.fleet.validSince);
    expect([one.lost, other.lost]).toEqual([1, 1]);
    expect([one.fleet.isTrusted, other.fleet.isTrusted]).toEqual([false, false]);
  });

  test("a server that starts with all that it knew has lost nothing", async () => {
    await using server = await startValkey();
    const one = await join(server, "a");
    await one.report();
    await server.command("SAVE");
    const { validSince } = one.fleet;
    await restart(server, [one]);
    for (let reports = 0; reports < 3; reports += 1) await one.report();
    expect(one.fleet).toMatchObject({ validSince, isTrusted: true });
  });

  test("a worker that has ended counts for some more reports, and not for ever", async () => {
    await using server = await startValkey();
    const one = await join(server, "a");
    const other = await join(server, "b");
    await one.report();
    await other.fleet.close();
    await one.report();
    expect(one.fleet.workers).toBe(2);
    for (let reports = 0; reports < 12; reports += 1) await one.report();
    expect(one.fleet.workers).toBe(1);
  });
});

/** The server crashes and starts, with its last snapshot. */
async function restart(
  server: ValkeyServer,
  workers: readonly { readonly connection: Pick<ValkeyConnection, "isUp"> }[],
): Promise<void> {
  await server.kill();
  while (workers.some(({ connection }) => connection.isUp)) await Bun.sleep(5);
  await server.start();
  while (workers.some(({ connection }) => !connection.isUp)) await Bun.sleep(5);
}

async function listeners(server: ValkeyServer): Promise<number> {
  const reply = await server.command("PUBSUB", "NUMSUB", "sluice:joined");
  return Array.isArray(reply) ? Number(reply[1]) : 0;
}
