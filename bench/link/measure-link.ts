import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/domain/clock.ts";
import { Link } from "../../src/process/link/link.ts";
import { connectToSocket } from "../../src/process/link/unix-socket.ts";
import type { LimitScope } from "../../src/domain/limits/limit-scope.ts";
import { limitStoreBounds } from "../../src/process/wiring/build-services.ts";
import { RemoteLimits } from "../../src/process/worker/coordination/limits/remote-limits.ts";
import { jsonKinds, type CoordinationMessages } from "../../src/process/link/messages.ts";
import type { Figure } from "../figure.ts";
import type { OwnContext } from "../figures/context.ts";
import { endChild } from "../stand/child.ts";
import { summarize } from "../statistics.ts";
import type { CpuMessages } from "./cpu-messages.ts";

type BenchLink = Link<CoordinationMessages & CpuMessages, Record<never, never>>;

/** Asks that are sent, and answered, in one turn of the event loop. */
const asksATurn = [1, 4, 16] as const;
/** One microsecond for a message; an ask and its answer are two. */
const target = { asks: 16, microseconds: 2 } as const;
/** What a key of most plans has. */
const scopes: readonly LimitScope[] = (["requests", "tokens"] as const).map((unit) => ({
  id: "key_0123456789abcdef",
  unit,
  window: "minute",
  limit: Number.MAX_SAFE_INTEGER,
}));
/** So that the code of both ends is compiled. */
const warmUpRounds = 3;

/** CPU of both processes for a request that a worker has counted by control. */
export async function measureLink(context: OwnContext): Promise<readonly Figure[]> {
  const { plan, signal, progress } = context;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-link-"));
  const path = join(folder, "link.sock");
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "answering-end.ts"), path], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    signal,
  });
  try {
    await child.stdout.getReader().read();
    const link = await connect(path);
    for (let round = 0; round < warmUpRounds; round += 1) await askAll(link, 16, plan.linkAsks);
    const costs = new Map<number, number[]>(asksATurn.map((asks) => [asks, []]));
    for (let round = 1; round <= plan.rounds; round += 1) {
      progress(`asks between processes: round ${round} of ${plan.rounds}`);
      for (const [asks, measured] of costs) measured.push(await askAll(link, asks, plan.linkAsks));
    }
    link.close();
    return [...costs].map(([asks, measured]) => describe(asks, measured));
  } finally {
    await endChild(child);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function connect(path: string): Promise<BenchLink> {
  const opened = Promise.withResolvers<BenchLink>();
  await connectToSocket(path, (channel) => {
    const link: BenchLink = new Link({
      channel,
      clock: systemClock,
      hello: undefined,
      jsonKinds,
      handlers: {},
      onOpen: () => opened.resolve(link),
      onLost: opened.reject,
    });
    return link;
  });
  return opened.promise;
}

/** CPU of both processes for each of some asks, in microseconds. */
async function askAll(link: BenchLink, asks: number, count: number): Promise<number> {
  const farBefore = await link.ask("cpu", undefined);
  const before = process.cpuUsage();
  const limits = new RemoteLimits(
    {
      ask: (kind, body) => link.ask(kind, body),
      tell: (kind, body) => link.tell(kind, body),
      tellSoon: (kind, body) => link.tellSoon(kind, body),
      // Control decides from the start.
      join: (part) => void part.report(),
    },
    { clock: systemClock, random: Math.random, ...limitStoreBounds },
  );
  for (let done = 0; done < count; done += asks) {
    await Promise.all(Array.from({ length: asks }, async () => limits.count(scopes)));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system + (await link.ask("cpu", undefined)) - farBefore) / count;
}

function describe(asks: number, measured: readonly number[]): Figure {
  return {
    name: `link.ask_at_${asks}`,
    title: `CPU of a decision of control, both sides, ${asks} a turn`,
    unit: "us",
    // What else runs on the machine only adds.
    sluice: summarize(measured).least,
    ...(asks === target.asks && { target: target.microseconds }),
  };
}
