import { describe, expect, test } from "bun:test";
import { sendCall, type LoadedCall } from "../support/fault-load.ts";
import { startFaultUpstreams } from "../support/fault-upstreams.ts";
import { upstreamKinds } from "../support/gateway.ts";
import { sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

/** Of both wires together. */
const callCount = sizeOf({ quick: 600, all: 3_000, measured: 10_000 });
const callersAtOnce = 50;
const testTimeoutMs = 300_000;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  test(
    "an answer that is cut after its first byte is not retried",
    async () => {
      await using world = await startFaultUpstreams({ kind, upstreams: 2 });
      // One of two targets always stays in service.
      for (const index of [0, 1]) world.break(index, "reset");
      const calls: LoadedCall[] = [];
      let begun = 0;
      const callUntilDone = async (): Promise<void> => {
        while (begun < callCount / upstreamKinds.length) {
          begun += 1;
          const wanted = { model: "everywhere", isStreamed: true };
          calls.push(await sendCall(world.gateway, wanted, `cut-${begun}`));
        }
      };
      await Promise.all(Array.from({ length: callersAtOnce }, callUntilDone));

      const firstWords = new Map(calls.map(({ mark, firstWordAt }) => [mark, firstWordAt]));
      const late = world
        .truth()
        .filter(({ mark, startedAt }) => startedAt > (firstWords.get(mark ?? "") ?? Infinity));
      const cut = calls.filter(({ firstWordAt }) => firstWordAt < Infinity).length;
      report({
        check: 21,
        name: `retries after the first byte, ${cut} cut streams, ${kind}`,
        value: late.length,
        limit: 0,
        isMet: late.length === 0,
      });
      expect(late).toEqual([]);
      expect(calls.filter(({ isWhole }) => isWhole)).toEqual([]);
      // On a busy machine the runtime may see the reset before it delivers earlier bytes.
      expect(cut).toBeGreaterThan(calls.length / 2);
      const rows = await world.gateway.usage();
      expect(rows).toHaveLength(calls.length);
      expect(rows.filter(({ outcome }) => outcome !== "failed")).toEqual([]);
    },
    testTimeoutMs,
  );
});
