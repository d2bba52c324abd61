import { expect, test } from "bun:test";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { isComplete } from "../support/requirement.ts";
import { MachinesBench, until } from "./machines-bench.ts";

const revocations = isComplete ? 200 : 20;
const rotations = isComplete ? 20 : 5;

describeWithPostgres((databases) => {
  async function start(dropsMessages = false): Promise<MachinesBench> {
    const bench = await MachinesBench.start(await databases.server.createDatabase());
    if (dropsMessages) await bench.messages.drop();
    return bench;
  }

  for (const drops of [false, true]) {
    const how = drops ? ", also without messages" : "";

    test(`a secret is refused everywhere once its receipt says that all have applied it${how}`, async () => {
      await using bench = await start(drops);
      const [gateway] = bench.gateways;
      const secret = gateway?.key ?? "";
      await bench.untilKnown(secret);
      bench.load(() => secret);
      for (let count = 0; count < revocations; count += 1) {
        const key = await gateway?.createKey();
        await bench.untilKnown(key?.text ?? "");
        await bench.revokeEverywhere(key?.id ?? "");
        expect(new Set(await bench.statusesOf(key?.text ?? ""))).toEqual(new Set([401]));
      }
      await bench.endLoad();
      expect([...bench.statuses.keys()]).toEqual([200]);
    });

    test(`rotations fail no call of programs that adopt the new secret${how}`, async () => {
      await using bench = await start(drops);
      const key = await bench.gateways[0]?.createKey();
      let secret = key?.text ?? "";
      await bench.untilKnown(secret);
      bench.load(() => secret);
      for (let count = 0; count < rotations; count += 1) {
        const rotated = await bench.rotate(key?.id ?? "", { overlap_seconds: 600 });
        await bench.untilKnown(rotated.api_key);
        expect(rotated.applied).toMatchObject({ of: 3 });
        secret = rotated.api_key;
      }
      await bench.endLoad();
      expect([...bench.statuses.keys()]).toEqual([200]);
      const old = secret;
      const last = await bench.rotate(key?.id ?? "", { compromised: true });
      await bench.untilKnown(last.api_key);
      expect(new Set(await bench.statusesOf(old))).toEqual(new Set([401]));
    });
  }

  test("a gateway that ends in order is forgotten at once", async () => {
    await using bench = await start();
    await bench.gateways[2]?.app[Symbol.asyncDispose]();
    await until(async () => (await bench.gateways[0]?.app.admin.processRows())?.length === 2);
  });
});
