import { expect, test } from "bun:test";
import type { Place } from "../../src/admission/capacity/place.ts";
import { startProcess, until, type AllottedProcess } from "../support/allotted-world.ts";
import { describeWithValkey, startValkey, type ValkeyServer } from "../support/valkey-server.ts";

const places = 9;
const options = { pool: { maxInFlight: places } };

describeWithValkey(() => {
  test("a flush never lets gateways hold twice as many places, and ends with as many as there are", async () => {
    await using server = await startValkey();
    await using gateways = await startThree(server);
    await fill(gateways);
    await server.command("FLUSHALL");
    const more = await fill(gateways);
    expect(places + more).toBeLessThanOrEqual(2 * places);
    // All exchange again within a beat, and the calls end.
    gateways.leaveAll();
    do gateways.leaveAll();
    while ((await fill(gateways)) !== places);
    expect(gateways.held).toBe(places);
  });

  test("after a flush, gateways that all have places get no more of them", async () => {
    await using server = await startValkey();
    await using gateways = await startThree(server);
    const each = gateways.all.flatMap((process) => [process, process, process]);
    await Promise.all(each.map((process) => process.enter({}, { waitMs: 10_000 })));
    expect(gateways.held).toBe(places);
    // Then calls ask the server again.
    await Bun.sleep(150);
    await server.command("FLUSHALL");
    expect(await fill(gateways)).toBe(0);
    await Bun.sleep(150);
    expect(await fill(gateways)).toBe(0);
    expect(gateways.held).toBe(places);
  });

  test.each(["killed", "frozen"])(
    "gateways serve within their parts while the server is %s",
    async (how) => {
      await using server = await startValkey();
      await using gateways = await startThree(server);
      await fill(gateways);
      gateways.leaveAll();
      if (how === "killed") await server.kill();
      else server.signal("SIGSTOP");
      await until(
        () => gateways.all.every(({ connection }) => !connection.isUp) || how === "frozen",
      );
      // What was allotted before may last; together that is less than twice as many.
      expect(await fill(gateways)).toBeGreaterThan(0);
      expect(gateways.held).toBeLessThan(2 * places);
      if (how === "killed") await server.start();
      else server.signal("SIGCONT");
      await until(() => gateways.all.every(({ connection }) => connection.isUp));
      do gateways.leaveAll();
      while ((await fill(gateways)) !== places);
    },
  );
});

async function startThree(server: ValkeyServer) {
  const all: AllottedProcess[] = [];
  while (all.length < 3) all.push(await startProcess(server, { ...options, timeoutMs: 500 }));
  return {
    all,
    get held(): number {
      return all.reduce((sum, { held }) => sum + held.size, 0);
    },
    leaveAll(): void {
      for (const process of all) process.leaveAll();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const process of all) await process[Symbol.asyncDispose]();
    },
  };
}

/** Takes what can be had at all gateways; returns how many places that were. */
async function fill({ all }: { readonly all: readonly AllottedProcess[] }): Promise<number> {
  const asked = all.flatMap((process) => Array.from({ length: 20 }, () => process.enter()));
  const given: (Place | undefined)[] = await Promise.all(asked);
  return given.filter((place) => place !== undefined).length;
}
