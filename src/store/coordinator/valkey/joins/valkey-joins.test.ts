import { afterAll, beforeAll, expect, test } from "bun:test";
import { joinsContract } from "../../../../../test/contracts/joins-contract.ts";
import { HeldAnswers } from "../../../../../test/support/held-answers.ts";
import { SteppedClock } from "../../../../../test/support/stepped-clock.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../../test/support/valkey-server.ts";
import { systemClock, type Clock } from "../../../../domain/clock.ts";
import { StorageUnavailable } from "../../../errors.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { ValkeyJoins } from "./valkey-joins.ts";

describeWithValkey(() => {
  let server: ValkeyServer;
  const closings: (() => void)[] = [];
  beforeAll(async () => {
    server = await startValkey();
  });
  afterAll(async () => {
    for (const close of closings) close();
    await server[Symbol.asyncDispose]();
  });
  test("a claim that is released while another answer is late is free at once", async () => {
    using relay = new HeldAnswers(server.port);
    const timeoutMs = 200;
    const [slow, fast] = [await connectTo(relay, { timeoutMs }), await connectTo(server)];
    const [one, other] = [slow, fast].map(
      (connection, index) =>
        new ValkeyJoins({ connection, clock: systemClock, process: `late ${index}` }),
    );
    if (one === undefined || other === undefined) throw new Error("two processes are needed");
    const request = { id: "late", requestDigest: "d" };
    expect(await one.claim(request)).toBe("owner");
    const repeated = other.claim(request);
    relay.hold();
    await slow.send("x", "PING", []).catch(() => undefined);
    one.release(request.id);
    relay.release();
    expect(await repeated).toBe("ended");
    for (const connection of [slow, fast]) connection.close();
  });

  let processes = 0;

  async function start(clock: Pick<Clock, "schedule">) {
    const connection = await connectTo(server);
    processes += 1;
    const name = `p${processes}`;
    const joins = new ValkeyJoins({ connection, clock, process: name });
    const heard = hearing(connection);
    closings.push(() => connection.close());
    return { name, joins, connection, heard };
  }

  /** Two processes; `settle` resolves when all that they told each other has arrived. */
  async function pair<Passing extends Pick<Clock, "schedule">>(clock: Passing) {
    await server.command("FLUSHALL");
    const [one, other] = [await start(clock), await start(clock)];
    const alive = new Set([one, other]);
    const settle = async (): Promise<void> => {
      for (const from of alive) {
        await from.connection.send("x", "PING", []);
        await Promise.all(Array.from(alive, (to) => to.heard(from.connection)));
      }
    };
    await settle();
    return { one, other, settle, alive };
  }

  joinsContract("valkey", async () => {
    const clock = new SteppedClock();
    const { one, other, settle, alive } = await pair(clock);
    return {
      one: one.joins,
      other: other.joins,
      oneDies: async () => {
        alive.delete(one);
        one.connection.close();
        // What it claimed expires.
        for (const id of ["a", "b"]) {
          if ((await server.command("HGET", keyOf(id), "owner")) === one.name) {
            await server.command("PEXPIRE", keyOf(id), "0");
          }
        }
        await clock.runScheduled();
      },
      settle,
      waitLong: () => clock.runScheduled(),
    };
  });

  test("claims are renewed, also when the server has lost them", async () => {
    const clock = new SteppedClock();
    const { one, other, settle } = await pair(clock);
    expect(await one.joins.claim(request)).toBe("owner");
    one.joins.unsaved(request.id);
    await server.command("FLUSHALL");
    await clock.runScheduled();
    await settle();
    expect(await other.joins.claim(request)).toBe("unsaved");
    const left = Number(await server.command("PTTL", keyOf(request.id)));
    expect(left).toBeGreaterThan(10_000);
  });

  test("the wait for an owner that has died ends when its claim has expired", async () => {
    const { one, other } = await pair(systemClock);
    expect(await one.joins.claim(request)).toBe("owner");
    const waiting = other.joins.claim(request);
    await server.command("PEXPIRE", keyOf(request.id), "0");
    expect(await waiting).toBe("ended");
    expect(await other.joins.claim(request)).toBe("owner");
  });

  test("nothing is claimed while the server is away", async () => {
    const away = await startValkey();
    const connection = await connectTo(away);
    const joins = new ValkeyJoins({ connection, clock: new SteppedClock(), process: "alone" });
    await away[Symbol.asyncDispose]();
    const error = await joins.claim(request).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StorageUnavailable);
    connection.close();
  });
});

const request = { id: "a", requestDigest: "content" };

function keyOf(id: string): string {
  return `sluice:join:{${id}}`;
}

/** Resolves when a message from there has come here, so everything before it has. */
function hearing(to: ValkeyConnection): (from: ValkeyConnection) => Promise<void> {
  return async (from) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const mark = crypto.randomUUID();
    const stop = to.subscribe("sluice:joins", (message) => {
      if (message === mark) resolve(message);
    });
    // The subscription itself may still be under way.
    while (to.isUp) {
      await from.publish("sluice:joins", mark);
      if (await Promise.race([promise, Bun.sleep(50)])) break;
    }
    stop();
  };
}
