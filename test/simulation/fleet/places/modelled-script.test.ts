import { RedisClient } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { AllotmentWish } from "../../../../src/store/allotments.ts";
import { allotScript } from "../../../../src/store/coordinator/valkey/places/allot-script.ts";
import {
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../support/valkey-server.ts";
import { Random } from "../../random.ts";
import { ModelledScript, type ToldNews } from "./modelled-script.ts";

type Wish = Omit<AllotmentWish, "bound">;

/** The script with a time that the test tells, and with news in a list. */
const testable = allotScript
  .replace("redis.call('TIME')", "{ARGV[11], ARGV[12]}")
  .replaceAll("redis.call('PUBLISH', channel,", "redis.call('RPUSH', channel,");

const limit = 30;

describeWithValkey(() => {
  let server: ValkeyServer;
  let client: RedisClient;
  beforeAll(async () => {
    server = await startValkey();
    client = new RedisClient(server.url.replace("valkey:", "redis:"));
  });
  afterAll(async () => {
    client.close();
    await server[Symbol.asyncDispose]();
  });

  async function runThere(me: string, wish: Wish, now: number) {
    const { sequence, used, kept, wanted, wantedFirst, accounts, allotted } = wish;
    const numbers = [wish.limit, sequence, used, kept, wanted, wantedFirst, accounts, allotted];
    const time = [Math.floor(now / 1_000), (now % 1_000) * 1_000];
    const parameters = [me, "news", ...numbers, ...time].map(String);
    const reply: unknown = await client.send("EVAL", [testable, "1", "bound", ...parameters]);
    const news: unknown = await client.send("LRANGE", ["news", "0", "-1"]);
    await client.send("DEL", ["news"]);
    return { reply, news: news as string[] };
  }

  test.each([1, 2, 3, 4])("the model answers as the script does: seed %i", async (seed) => {
    await client.send("FLUSHALL", []);
    const random = new Random(seed);
    const model = new ModelledScript();
    let now = 1e12;
    let scarce = 0;
    for (let sequence = 1; sequence <= 400; sequence += 1) {
      now += random.chance(0.02) ? random.whole(1_000, 12_000) : random.whole(0, 60);
      const me = `p${random.whole(1, 8)}`;
      const used = random.whole(0, 6);
      const wanted = random.chance(0.6) ? random.whole(0, 8) : 0;
      const wish = {
        limit,
        sequence: random.chance(0.05) ? 0 : sequence,
        used,
        kept: used + random.whole(0, 4),
        wanted,
        wantedFirst: random.chance(0.3) ? random.whole(0, wanted) : 0,
        accounts: random.whole(0, 4),
        allotted: random.whole(0, 1),
      };
      const there = await runThere(me, wish, now);
      const here = model.run(me, wish, now);
      scarce += here.scarceDivisions;
      expect({ sequence, reply: here.reply }).toEqual({ sequence, reply: there.reply as number[] });
      expect(here.news.map(textOf).map(sorted)).toEqual(there.news.map(sorted));
    }
    expect(scarce).toBeGreaterThan(100);
  });
});

function textOf({ is, processes }: ToldNews): string {
  return [is, "bound", ...processes].join(" ");
}

/** The server names winners in the order of its hash. */
function sorted(text: string): string {
  return text.split(" ").toSorted().join(" ");
}
