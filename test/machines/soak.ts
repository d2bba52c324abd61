import pg from "pg";
import { Random } from "../../simulator/answer/random.ts";
import type { TruthEntry } from "../../simulator/simulator.ts";
import { simulatorUpstream } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { mixedCalls, twoModels } from "./mixed-calls.ts";
import type { MachineStack } from "./machine-stack.ts";
import { askAll, RevocationBench } from "./revocation-bench.ts";
import { soakFaults } from "./soak-faults.ts";
import { mostSpoolKb, type SoakSample, spoolKbOf, takeSample } from "./soak-samples.ts";
import { StackLoad } from "./stack-load.ts";

export interface SoakOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Called with a line for people. */
  readonly tell: (line: string) => void;
}

export interface SoakResult {
  readonly calls: number;
  readonly faults: number;
  /** Calls by status; 0: cut, or not answered. */
  readonly statuses: Readonly<Record<number, number>>;
  /** Ids of answered calls without a row. */
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  /** Calls that the upstream has seen. */
  readonly seen: number;
  readonly rows: number;
  readonly completedRows: number;
  readonly samples: readonly SoakSample[];
}

const gateways = 2;
const share = 0.6;
const calibrationMs = 3_000;
/** More would measure the callers, which share the machine. */
const mostPerSecond = 100;
/** For a comparison of thirds. */
const leastFaults = 6;
const quietMs = 1_000;
/** The default of a stack. */
const processesEach = 2;
/** Rows that are not stored by then are lost. */
const storedWithinMs = 120_000;
const goodAnswers = 3;

/** Several gateways under a load, with one random fault after the other. */
export async function soak({ seed, seconds, tell }: SoakOptions): Promise<SoakResult> {
  const truth = new Set<string>();
  await using bench = await RevocationBench.create({
    machines: gateways,
    simulator: { tokensPerSecond: 40, truthLogLimit: 1, onTruth: (entry) => note(truth, entry) },
    models: (simulator) => twoModels(simulatorUpstream(simulator, "openai")),
    prepare: limitWal,
  });
  await bench.load.stop();
  const { stack } = bench;
  const random = new Random(seed);
  const perSecond = await measurePace(bench);
  tell(`seed ${seed}: ${seconds} s at ${perSecond} calls a second`);
  const load = new StackLoad({ url: stack.url, keys: bench.secrets, perSecond, call: calls() });
  const samples: SoakSample[] = [];
  let due: string[] = [];
  let faults = 0;
  while (load.elapsedMs < seconds * 1_000 || faults < leastFaults) {
    // Each of them once before one comes again.
    if (due.length === 0) due = shuffled(Object.keys(soakFaults), random);
    const name = due.pop() ?? "";
    tell(`${Math.round(load.elapsedMs / 1_000)} s: ${name}`);
    faults += 1;
    await soakFaults[name]?.({
      stack,
      random,
      key: bench.secrets[0] ?? "",
      rotate: async () => void (await bench.rotate(faults)),
    });
    await untilRecovered(bench);
    await Bun.sleep(quietMs);
    samples.push(await takeSample(stack));
  }
  const made = await load.stop();
  await untilIdle(stack);
  const answered = made.filter(({ status }) => status === 200).map(({ requestId }) => requestId);
  const seen = truth.size;
  const ledger = await readSettledLedger(stack, { answered, seen });
  return { calls: made.length, faults, statuses: load.statuses(), samples, seen, ...ledger };
}

const calls = () => mixedCalls(8);

function note(truth: Set<string>, { mark }: TruthEntry): void {
  // The gateways' own probes have none, and no row.
  if (mark !== null) truth.add(mark);
}

/** So that its size is settled soon. */
async function limitWal(storageUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: storageUrl });
  await client.connect();
  await client.query("ALTER SYSTEM SET max_wal_size = '64MB'");
  await client.query("ALTER SYSTEM SET min_wal_size = '32MB'");
  await client.query("SELECT pg_reload_conf()");
  await client.end();
}

/** A share of the most calls that the gateways answer. */
async function measurePace({ stack, secrets }: RevocationBench): Promise<number> {
  const call = calls();
  const from = performance.now();
  let ended = 0;
  const callers = Array.from({ length: 24 }, async () => {
    while (performance.now() < from + calibrationMs) {
      await call(stack.url, secrets[0] ?? "");
      ended += 1;
    }
  });
  await Promise.all(callers);
  const most = (ended * 1_000) / (performance.now() - from);
  return Math.max(5, Math.min(mostPerSecond, Math.round(most * share)));
}

/** Until each gateway answers several calls in a row, and what it has to store is stored. */
async function untilRecovered({ stack, secrets }: RevocationBench): Promise<void> {
  for (const machine of stack.machines) {
    const call = calls();
    for (let good = 0; good < goodAnswers; await Bun.sleep(50)) {
      const { status } = await call(machine.process.dataUrl, secrets[0] ?? "").catch(nobody);
      good = status === 200 ? good + 1 : 0;
    }
    while ((await askAll([machine], secrets[0] ?? "")).some((status) => status !== 200)) {
      await Bun.sleep(50);
    }
  }
  await untilStored(stack, 100);
  // Files of rows that are stored are removed.
  await until(() => spoolKbOf(stack) <= mostSpoolKb);
}

const nobody = () => ({ status: 0 });

async function untilIdle(stack: MachineStack): Promise<void> {
  while (stack.simulator.openCalls > 0) await Bun.sleep(50);
  await untilStored(stack, 0);
}

/** Until at most so many rows wait in the spool of each process. */
async function untilStored({ machines }: MachineStack, rows: number): Promise<void> {
  for (const { process } of machines) {
    const waiting = async () => {
      const page = await (await fetch(`${process.adminUrl}/metrics`)).text();
      const series = [...page.matchAll(/^sluice_ledger_queue_rows\{[^}]*\} (\d+)$/gm)];
      // A process that does not know yet has none.
      return series.length < processesEach
        ? Infinity
        : Math.max(...series.map(([, n]) => Number(n)));
    };
    while ((await waiting().catch(() => Infinity)) > rows) await Bun.sleep(100);
  }
}

/** Rows of processes that were killed are stored by others, who may still read their spools. */
async function readSettledLedger(
  { storageUrl }: MachineStack,
  { answered, seen }: { readonly answered: readonly string[]; readonly seen: number },
) {
  const until = performance.now() + storedWithinMs;
  for (;;) {
    const ledger = await readLedger(storageUrl, answered);
    const isWhole = ledger.lost.length === 0 && ledger.rows >= seen;
    if (isWhole || performance.now() > until) return ledger;
    await Bun.sleep(1_000);
  }
}

async function readLedger(storageUrl: string, answered: readonly string[]) {
  const client = new pg.Client({ connectionString: storageUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; count: string; completed: boolean }>(
      `SELECT id, count(*) AS count, bool_or(outcome = 'completed') AS completed
       FROM usage GROUP BY id`,
    );
    const stored = new Set(rows.map(({ id }) => id));
    return {
      lost: answered.filter((id) => !stored.has(id)),
      doubled: rows.filter(({ count }) => count !== "1").map(({ id }) => id),
      rows: rows.length,
      completedRows: rows.filter(({ completed }) => completed).length,
    };
  } finally {
    await client.end();
  }
}

function shuffled(names: string[], random: Random): string[] {
  return names
    .map((name) => ({ name, place: random.next() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ name }) => name);
}
