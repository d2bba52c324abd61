import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { memoryBytes, processesOf } from "../../bench/stand/process-usage.ts";
import type { MachineStack } from "./machine-stack.ts";

/** What must not grow, measured while nothing fails. */
export interface SoakSample {
  /** Of all processes of the gateways. */
  readonly residentMb: number;
  readonly fileDescriptors: number;
  readonly spoolKb: number;
  readonly walMb: number;
  readonly connections: number;
  readonly redisKb: number;
  readonly redisKeys: number;
}

/** All that a run writes is far more. */
export const mostSpoolKb = 2_048;

/** How much more a third of a run may have than the first: a part of it, and an amount. */
const mostGrowth: Readonly<Record<keyof SoakSample, readonly [factor: number, more: number]>> = {
  residentMb: [1.5, 200],
  fileDescriptors: [1.5, 100],
  spoolKb: [1.5, mostSpoolKb],
  walMb: [1.5, 64],
  connections: [1.5, 10],
  redisKb: [1.5, 2_048],
  redisKeys: [1.5, 200],
};

export async function takeSample(stack: MachineStack): Promise<SoakSample> {
  const pids = stack.machines.flatMap(({ process }) => processesOf(process.pid));
  const [wal, connections] = await askDatabase(stack.storageUrl);
  const info = String(await stack.valkey.command("INFO", "memory"));
  return {
    residentMb: Math.round(memoryBytes(pids) / 2 ** 20),
    fileDescriptors: pids.reduce((sum, pid) => sum + countFiles(pid), 0),
    spoolKb: spoolKbOf(stack),
    walMb: Math.round(wal / 2 ** 20),
    connections,
    redisKb: Math.round(Number(/used_memory:(\d+)/.exec(info)?.[1]) / 1024),
    redisKeys: Number(await stack.valkey.command("DBSIZE")),
  };
}

export function spoolKbOf({ machines }: MachineStack): number {
  const bytes = machines.reduce((sum, { dataDir }) => sum + sizeOf(join(dataDir, "spool")), 0);
  return Math.round(bytes / 1024);
}

/** What grew by more than it may, from the first third of the samples to the last. */
export function grownIn(samples: readonly SoakSample[]): readonly string[] {
  const third = Math.ceil(samples.length / 3);
  const [first, last] = [samples.slice(0, third), samples.slice(-third)];
  return Object.entries(mostGrowth).flatMap(([name, [factor, more]]) => {
    const of = (some: readonly SoakSample[]) => median(some.map((each) => numberOf(each, name)));
    const most = of(first) * factor + more;
    return of(last) <= most ? [] : [`${name}: ${of(first)} -> ${of(last)}, at most ${most}`];
  });
}

/** The medians of the first and the last third, for the log. */
export function describeGrowth(samples: readonly SoakSample[]): string {
  const third = Math.ceil(samples.length / 3);
  const [first, last] = [samples.slice(0, third), samples.slice(-third)];
  return Object.keys(mostGrowth)
    .map((name) => {
      const of = (some: readonly SoakSample[]) => median(some.map((each) => numberOf(each, name)));
      return `${name} ${of(first)} -> ${of(last)}`;
    })
    .join(", ");
}

function numberOf(sample: SoakSample, name: string): number {
  return new Map<string, number>(Object.entries(sample)).get(name) ?? Number.NaN;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

/** 0 when the process has ended meanwhile. */
function countFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return entries.reduce((sum, entry) => {
    const found = statSync(join(folder, entry), { throwIfNoEntry: false });
    return sum + (found?.isFile() === true ? found.size : 0);
  }, 0);
}

async function askDatabase(url: string): Promise<readonly [walBytes: number, connections: number]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ wal: string; connections: string }>(
      `SELECT (SELECT sum(size) FROM pg_ls_waldir()) AS wal,
         (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice') AS connections`,
    );
    return [Number(rows[0]?.wal), Number(rows[0]?.connections)];
  } finally {
    await client.end();
  }
}
