import { expect, test } from "bun:test";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { systemClock } from "../../../domain/clock.ts";
import type { ReplicaFacts } from "../../../domain/replica.ts";
import { PostgresReplicaStore } from "../../../store/postgres/replica-store.ts";
import { Replicas } from "./replicas.ts";

const facts: Omit<ReplicaFacts, "id" | "startedAt" | "adminUrl"> = {
  name: "host",
  version: "1.0.0",
  configuredAt: 2_000,
  configDigest: "abc",
  limitsDigest: "def",
  pepperMarks: "one",
  keysEpoch: 0,
  workers: 2,
  notReady: undefined,
  degraded: undefined,
};

const yes = (): boolean => true;
const no = (): boolean => false;

describeWithPostgres((databases) => {
  async function open() {
    const url = await databases.server.createDatabase();
    const connection = await databases.connect({ url });
    const isOpen = () => connection.open().then(yes, no);
    while (!(await isOpen())) await Bun.sleep(20);
    const store = new PostgresReplicaStore(connection, { url }, systemClock);
    const told: string[] = [];
    return {
      connection,
      told,
      gateway: (id: string, startedAt: number) =>
        new Replicas({
          store,
          clock: systemClock,
          own: () => ({ ...facts, id, startedAt, adminUrl: `http://127.0.0.1:${startedAt}` }),
          keptMs: 60_000,
          reloadKeys: () => Promise.resolve(true),
          keepKeys: () => Promise.resolve(),
          onMessagesLost: () => undefined,
          onMessagesBack: () => undefined,
          onCounted: () => undefined,
          onDifference: (text) => void told.push(text),
          onSame: () => void told.push("same"),
        }),
    };
  }

  const namesOf = async (replicas: Replicas): Promise<readonly string[]> =>
    (await replicas.list()).map(({ id }) => id);

  test("a gateway with a copy of another one's data directory is listed beside it", async () => {
    const { gateway, told } = await open();
    const [one, copy] = [gateway("rep_a@host", 1_000), gateway("rep_a@host", 2_000)];
    one.start();
    copy.start();
    await copy.list();
    // It has no row of its own yet, and would not count itself.
    expect(await one.applied()).toBeUndefined();
    while ((await namesOf(copy)).length < 2) {
      await one.list();
      await Bun.sleep(20);
    }
    expect(await namesOf(one)).toEqual(["rep_a@host", "rep_a@host+1000"]);
    expect((await one.applied())?.of).toBe(2);
    while (told.length < 2) await Bun.sleep(20);
    expect(told[0]).toContain("is a copy of another one's (host (http://127.0.0.1:2000), host");
    await one.stop();
    expect(await namesOf(copy)).toEqual(["rep_a@host"]);
    await copy.stop();
  });

  test("the successor of a control process takes its place", async () => {
    const { gateway, told } = await open();
    const before = gateway("rep_a@host", 1_000);
    before.start();
    expect(await namesOf(before)).toEqual(["rep_a@host"]);
    const after = gateway("rep_a@host", 2_000);
    after.start();
    await after.list();
    await before.list();
    await before.stop();
    expect(await namesOf(after)).toEqual(["rep_a@host"]);
    expect(told).toEqual([]);
    await after.stop();
  });
});
