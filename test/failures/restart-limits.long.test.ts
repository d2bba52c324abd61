import { expect, test } from "bun:test";
import { ProcessBench } from "../support/ledger-truth-process.ts";
import type { ServingProcess } from "../support/sluice-process.ts";

const kills = 5;
const limit = 20_000;
const cap = 3_000;
/** Streams with this cap that fit into a minute, including their short inputs. */
const fitting = Math.floor(limit / cap);

interface Admitted {
  /** Monotonic milliseconds. */
  readonly at: number;
}

test("a key gets its minute only once, even if the gateway is killed repeatedly", async () => {
  await using bench = await ProcessBench.create({
    keys: 1,
    plan: { plan: "enterprise", limits: { requestsPerMinute: 1_000, tokensPerMinute: limit } },
    simulator: { tokensPerSecond: 20 },
  });
  const admitted: Admitted[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    await using serving = await bench.serve("--unsupervised");
    const streams = Array.from({ length: 4 }, () => open(bench, serving));
    const begun = await Promise.all(streams);
    admitted.push(...begun.filter((stream) => stream !== undefined));
    serving.signal("SIGKILL");
    await bench.untilUpstreamIsFree();
  }
  const inAnyMinute = admitted.map(
    ({ at: from }) => admitted.filter(({ at }) => at >= from && at < from + 60_000).length,
  );
  expect(Math.max(...inAnyMinute)).toBe(fitting);
}, 120_000);

/** Opens a stream that lasts until the process ends; undefined if it was refused. */
async function open(bench: ProcessBench, serving: ServingProcess): Promise<Admitted | undefined> {
  const at = performance.now();
  const messages = [{ role: "user", content: "count: 2900" }];
  const body = { model: "chat-openai", messages, stream: true, max_tokens: cap };
  const response = await bench.fetch(serving, { path: "/v1/chat/completions", body });
  if (response.status === 200) return { at };
  expect(response.status).toBe(429);
  await response.text();
  return undefined;
}
