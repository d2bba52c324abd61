import { expect, test } from "bun:test";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { runSluice, type ServingProcess } from "../support/sluice-process.ts";

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
    await using serving = await bench.serve();
    const streams = Array.from({ length: 4 }, () => open(bench, serving));
    const begun = await Promise.all(streams);
    admitted.push(...begun.filter((stream) => stream !== undefined));
    serving.kill();
    await bench.untilUpstreamIsFree();
  }
  const inAnyMinute = admitted.map(
    ({ at: from }) => admitted.filter(({ at }) => at >= from && at < from + 60_000).length,
  );
  expect(Math.max(...inAnyMinute)).toBe(fitting);
}, 120_000);

test("a key gets its minute only once, if the gateway is killed after its calls were stored", async () => {
  const requestsPerMinute = 60;
  await using bench = await ProcessBench.create({
    keys: 1,
    plan: { plan: "enterprise", limits: { requestsPerMinute, tokensPerMinute: 10_000_000 } },
  });
  const startedAt = performance.now();
  let admitted = 0;
  for (let kill = 0; kill < 3; kill += 1) {
    await using serving = await bench.serve();
    for (let made = 0; made < requestsPerMinute / 2; made += 1) {
      if ((await call(bench, serving, false)) === 200) admitted += 1;
    }
    // By then the calls are in the database, and the spool went on in another file.
    await Bun.sleep(4_000);
    serving.kill();
    await serving.exited;
  }
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  expect(admitted).toBe(requestsPerMinute);
}, 120_000);

test("a key gets its minute only once while the only process is replaced under load", async () => {
  const requestsPerMinute = 2_000;
  await using bench = await ProcessBench.create({
    keys: 1,
    plan: { plan: "enterprise", limits: { requestsPerMinute, tokensPerMinute: 10_000_000 } },
    sections: { http: "{ idle_timeout: 2s }" },
  });
  await using serving = await bench.serve();
  const startedAt = performance.now();
  const answers = { 200: 0, 429: 0 };
  /** More than the restart uses is left for afterwards. */
  let pauseMs = 100;
  let isOver = false;
  /** Half of the callers stay on connections to the process that leaves. */
  const callOn = async (keepalive: boolean): Promise<void> => {
    while (!isOver) {
      const status = await call(bench, serving, keepalive);
      expect([200, 429]).toContain(status);
      answers[status as 200 | 429] += 1;
      await Bun.sleep(pauseMs);
    }
  };
  const callers = Array.from({ length: 8 }, (_, index) => index);
  const { processPid } = serving;
  const underWay = Promise.all(callers.map((caller) => callOn(caller % 2 === 0)));
  const { exitCode } = await runSluice(["restart", "--config", bench.configPath]);
  expect([exitCode, serving.processPid === processPid]).toEqual([0, false]);
  pauseMs = 0;
  // The process that leaves has kept some of it for its connections, until it ends.
  await until("the limit is reached", () => answers[200] >= requestsPerMinute);
  const before = answers[429];
  await until("further calls are refused", () => answers[429] > before + 50);
  isOver = true;
  await underWay;
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  expect(answers[200]).toBe(requestsPerMinute);
}, 120_000);

async function call(
  bench: ProcessBench,
  serving: ServingProcess,
  keepalive: boolean,
): Promise<number> {
  const messages = [{ role: "user", content: "count: 1" }];
  const body = { model: "chat-openai", messages };
  const path = "/v1/chat/completions";
  const response = await bench.fetch(serving, { path, body }, {}, { keepalive });
  await response.text();
  return response.status;
}

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
