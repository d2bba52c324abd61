import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/domain/clock.ts";
import { Link } from "../../src/process/link/link.ts";
import { connectToSocket } from "../../src/process/link/unix-socket.ts";
import type { Figure } from "../figure.ts";
import type { OwnContext } from "../figures/context.ts";
import { endChild } from "../stand/child.ts";
import { summarize } from "../statistics.ts";
import { asked, jsonKinds, type BenchAsks } from "./bench-asks.ts";

type BenchLink = Link<BenchAsks, Record<never, never>>;

/** Asks that are sent, and answered, in one turn of the event loop. */
const asksATurn = [1, 4, 16] as const;
/** One microsecond for a message; an ask and its answer are two. */
const target = { asks: 16, microseconds: 2 } as const;
/** So that the code of both ends is compiled. */
const warmUpRounds = 3;

/** CPU of both processes for an ask of one that the other answers. */
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
    const link: BenchLink = new Link<BenchAsks, Record<never, never>>({
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
  for (let done = 0; done < count; done += asks) {
    await Promise.all(Array.from({ length: asks }, () => link.ask("acquire", asked)));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system + (await link.ask("cpu", undefined)) - farBefore) / count;
}

function describe(asks: number, measured: readonly number[]): Figure {
  return {
    name: `link.ask_at_${asks}`,
    title: `CPU of an ask and its answer, both sides, ${asks} a turn`,
    unit: "us",
    sluice: summarize(measured).median,
    ...(asks === target.asks && { target: target.microseconds }),
  };
}
