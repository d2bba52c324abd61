import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import type { TruthEntry } from "../../simulator/simulator.ts";
import type { UsageReports } from "../../src/store/usage-reports.ts";
import type { SeenCall } from "./ledger-truth-caller.ts";

export interface LedgerEvidence {
  readonly calls: readonly SeenCall[];
  readonly rows: readonly UsageRecord[];
  readonly truth: readonly TruthEntry[];
}

/** The ledger compared with what callers and the upstream saw. */
export interface LedgerReport {
  readonly calls: number;
  readonly rows: number;
  /** Rows that are missing for a call. */
  readonly missing: number;
  /** Rows beyond the one of each call. */
  readonly extra: number;
  /** Rows whose outcome or status is not the caller's. */
  readonly wrongEnds: number;
  /** Rows with impossible tokens. */
  readonly wrongTokens: number;
  /** Calls whose tokens had to be, and are, exactly the upstream's. */
  readonly exact: number;
  /** Whole answers without counts: the relative errors of the ledger's estimates. */
  readonly uncounted: { readonly calls: number; readonly input: number; readonly output: number };
  readonly outcomes: Readonly<Record<string, number>>;
  /** The first errors of each kind, as text. */
  readonly problems: readonly string[];
}

const shownProblems = 20;
/** The gateway counts milliseconds from its own start. */
const clockDriftMs = 5;

/**
 * Compares the ledger with callers and upstream. The calls of a key must be made, and listed, one
 * after the other: so a row finds its call even if the caller has no id of it.
 */
export function checkLedger(evidence: LedgerEvidence): LedgerReport {
  return new LedgerCheck(evidence).report();
}

class LedgerCheck {
  readonly #evidence: LedgerEvidence;
  readonly #truthOf: ReadonlyMap<string, readonly TruthEntry[]>;
  readonly #outcomes: Record<string, number> = {};
  readonly #problems: string[] = [];
  readonly #counts = { missing: 0, extra: 0, wrongEnds: 0, wrongTokens: 0, exact: 0 };
  readonly #uncounted = { calls: 0, input: 0, trueInput: 0, output: 0, trueOutput: 0 };

  constructor(evidence: LedgerEvidence) {
    this.#evidence = evidence;
    this.#truthOf = Map.groupBy(evidence.truth, ({ mark }) => mark ?? "");
  }

  report(): LedgerReport {
    const { calls, rows } = this.#evidence;
    const rowsOfKey = Map.groupBy(rows, ({ keyId }) => keyId);
    const callsOfKey = Map.groupBy(calls, ({ keyId }) => keyId);
    for (const [keyId, made] of callsOfKey) this.#checkKey(made, rowsOfKey.get(keyId) ?? []);
    for (const [keyId, strange] of rowsOfKey) {
      if (!callsOfKey.has(keyId)) this.#note("extra", `${strange.length} rows of ${keyId}`);
    }
    const { input, trueInput, output, trueOutput } = this.#uncounted;
    return {
      calls: calls.length,
      rows: rows.length,
      ...this.#counts,
      uncounted: {
        calls: this.#uncounted.calls,
        input: (input - trueInput) / Math.max(1, trueInput),
        output: (output - trueOutput) / Math.max(1, trueOutput),
      },
      outcomes: this.#outcomes,
      problems: this.#problems.slice(0, shownProblems),
    };
  }

  #note(what: "missing" | "extra" | "wrongEnds" | "wrongTokens", problem: string): void {
    this.#counts[what] += 1;
    this.#problems.push(`${what}: ${problem}`);
  }

  #checkKey(calls: readonly SeenCall[], rows: readonly UsageRecord[]): void {
    const byId = Map.groupBy(rows, ({ id }) => id);
    const nameless: SeenCall[] = [];
    for (const call of calls) {
      if (call.id === undefined) {
        nameless.push(call);
        continue;
      }
      const [row, ...more] = byId.get(call.id) ?? [];
      byId.delete(call.id);
      this.#checkCall(call, row);
      for (const extra of more) this.#note("extra", describeRow(extra));
    }
    this.#checkNameless(nameless, [...byId.values()].flat());
  }

  /** Calls without an answer: each row belongs to the last fitting call before it. */
  #checkNameless(calls: readonly SeenCall[], rows: readonly UsageRecord[]): void {
    const unclaimed = new Set(calls);
    const inOrder = rows.toSorted((one, other) => one.startedAt - other.startedAt);
    for (const row of inOrder) {
      const call = [...unclaimed].findLast(
        ({ model, sentAt }) => model === row.model && sentAt <= row.startedAt + clockDriftMs,
      );
      if (call === undefined) {
        this.#note("extra", describeRow(row));
        continue;
      }
      unclaimed.delete(call);
      this.#checkCall(call, row);
    }
    for (const call of unclaimed) {
      if (this.#truths(call).length > 0) this.#note("missing", describe(call));
    }
  }

  #truths({ mark }: SeenCall): readonly TruthEntry[] {
    return this.#truthOf.get(mark) ?? [];
  }

  #checkCall(call: SeenCall, row: UsageRecord | undefined): void {
    const truths = this.#truths(call);
    if (call.saw === "turned-away") {
      // The first such call is recorded like any failure once that is possible.
      const isFinder = row?.outcome === "failed" && row.attempts === 0 && row.inputTokens === 0;
      if (row !== undefined && !isFinder) this.#note("extra", describeRow(row));
      if (truths.length > 0) this.#note("missing", `${describe(call)} was sent upstream`);
      return;
    }
    if (row === undefined) return this.#note("missing", describe(call));
    const outcome = `${call.saw}: ${row.outcome}, ${row.usageSource}`;
    this.#outcomes[outcome] = (this.#outcomes[outcome] ?? 0) + 1;
    const seen = `${describe(call)} ${describeRow(row)}, ${truths.map(describeTruth).join(" ")}`;
    if (!hasRightEnd(call, row)) this.#note("wrongEnds", seen);
    if (!hasRightAttempts(call, row, truths)) this.#note("wrongEnds", `attempts: ${seen}`);
    if (!this.#hasRightTokens(call, row, truths)) this.#note("wrongTokens", seen);
  }

  #hasRightTokens(call: SeenCall, row: UsageRecord, truths: readonly TruthEntry[]): boolean {
    const { inputTokens: input, outputTokens: output, outcome, usageSource } = row;
    // On a slow machine, an attempt that breaks off at once may last so long that it is estimated.
    if (usageSource === "estimated" && brokeOffLate(row)) return true;
    const answered = truths.filter(({ status }) => status === 200);
    const trueInput = sum(answered.map(({ promptTokens }) => promptTokens));
    const trueOutput = sum(answered.map(({ completionTokens }) => completionTokens));
    const { usage } = call;
    if (usage !== undefined && (usage.input !== input || usage.output !== output)) return false;
    const isCounted = answered.length > 0 && answered.every(({ hasUsage }) => hasUsage);
    if (outcome === "completed") {
      if (isCounted && (call.saw !== "left" || usageSource === "upstream")) {
        this.#counts.exact += 1;
        return usageSource === "upstream" && input === trueInput && output === trueOutput;
      }
      this.#addUncounted({ input, trueInput, output, trueOutput });
      if (usageSource === "upstream" || input === 0) return false;
      // The simulator writes a piece for each token, and pieces are counted.
      if (call.isStreamed && call.saw === "completed") return output === trueOutput;
      return call.path === "/v1/embeddings" ? output === 0 : output > 0;
    }
    // The caller left before anything was sent.
    if (row.attempts === 0 && call.saw === "left") return input === 0 && output === 0;
    if (outcome === "failed" && call.pieces === 0) {
      const isFree = input === 0 && output === 0;
      // Attempts that were cut or broken off after a second are estimated. Delivered pieces may have
      // been lost in transit, like the rest.
      const isEstimated = usageSource === "estimated" && answered.length > 0;
      if (isFree || call.saw === "failed") return isFree || isEstimated;
    }
    const leastOutput = call.pieces > 0 && outcome !== "interrupted" ? 1 : 0;
    return input > 0 && output >= leastOutput && output <= trueOutput;
  }

  #addUncounted(counts: {
    readonly input: number;
    readonly trueInput: number;
    readonly output: number;
    readonly trueOutput: number;
  }): void {
    this.#uncounted.calls += 1;
    this.#uncounted.input += counts.input;
    this.#uncounted.trueInput += counts.trueInput;
    this.#uncounted.output += counts.output;
    this.#uncounted.trueOutput += counts.trueOutput;
  }
}

/** Whether an attempt was broken off after a second, when an upstream may have generated. */
function brokeOffLate({ routing }: UsageRecord): boolean {
  const attempts = routing?.attempts ?? [];
  return attempts.some(
    ({ outcome, durationMs }) =>
      durationMs >= 1_000 && (outcome === "connection-lost" || outcome === "broken-answer"),
  );
}

function hasRightEnd({ saw, status }: SeenCall, row: UsageRecord): boolean {
  switch (saw) {
    case "completed":
      return row.outcome === "completed" && row.status === 200;
    case "failed":
      return row.outcome === "failed" && row.status === status;
    case "left":
      // The end of the answer, or of the gateway, may have come first, and a refusal by a full spool.
      if (row.outcome === "abandoned") return row.status === 499;
      if (row.outcome === "failed") return row.status === 503 && row.attempts === 0;
      return row.outcome === "completed" ? row.status === 200 : isInterrupted(row);
    case "lost":
      return row.outcome === "completed" || row.outcome === "failed" || isInterrupted(row);
    case "turned-away":
      return false;
  }
}

function isInterrupted({ outcome, status, code }: UsageRecord): boolean {
  return outcome === "interrupted" && status === 500 && code === "gateway_interrupted";
}

function hasRightAttempts(
  call: SeenCall,
  row: UsageRecord,
  truths: readonly TruthEntry[],
): boolean {
  if (row.outcome === "abandoned" || row.outcome === "interrupted") return true;
  if (truths.length < row.attempts) return false;
  // A request that a kept connection has lost is sent once more within its attempt.
  const requestsOfOne = row.model.startsWith("lost-") ? 2 : 1;
  if (call.isOneRequest) return truths.length <= row.attempts * requestsOfOne;
  return row.attempts >= 1;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function describe({ mark, part, model, id, saw, status, pieces }: SeenCall): string {
  return `${mark} (${part}, ${model}) ${JSON.stringify({ id, saw, status, pieces })}`;
}

function describeRow(row: UsageRecord): string {
  const { id, outcome, status, model, inputTokens, outputTokens, usageSource, attempts } = row;
  const shown = { id, outcome, status, model, inputTokens, outputTokens, usageSource, attempts };
  return `row ${JSON.stringify(shown)}`;
}

function describeTruth(truth: TruthEntry): string {
  const { model, status, promptTokens, completionTokens, hasUsage, clientLeft } = truth;
  const shown = { model, status, promptTokens, completionTokens, hasUsage, clientLeft };
  return `truth ${JSON.stringify(shown)}`;
}

/** Sums of the ledger, from rows or roll-ups. */
export interface LedgerSums {
  readonly calls: number;
  readonly failedCalls: number;
  readonly abandonedCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimatedTokens: number;
  /** Nano-USD. */
  readonly cost: bigint;
  readonly unpricedCalls: number;
}

/** By key, model and status. */
export function sumRows(rows: readonly UsageRecord[]): Readonly<Record<string, LedgerSums>> {
  const groups = Map.groupBy(rows, ({ keyId, model, status }) => `${keyId} ${model} ${status}`);
  const sums = [...groups].map(([name, group]) => {
    const counted = (wanted: (row: UsageRecord) => boolean) => group.filter(wanted).length;
    const total = (of: (row: UsageRecord) => number) => sum(group.map(of));
    return [
      name,
      {
        calls: group.length,
        failedCalls: counted(({ outcome }) => outcome !== "completed"),
        abandonedCalls: counted(({ outcome }) => outcome === "abandoned"),
        inputTokens: total(({ inputTokens }) => inputTokens),
        outputTokens: total(({ outputTokens }) => outputTokens),
        estimatedTokens: total((row) =>
          row.usageSource === "upstream" ? 0 : row.inputTokens + row.outputTokens,
        ),
        cost: group.reduce((all, { costNano = 0 }) => all + BigInt(costNano), 0n),
        unpricedCalls: counted(({ costNano }) => costNano === undefined),
      },
    ] as const;
  });
  return Object.fromEntries(sums.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** The same from the roll-ups. */
export async function sumRollUps(
  reports: Pick<UsageReports, "totals">,
): Promise<Readonly<Record<string, LedgerSums>>> {
  const totals = await reports.totals({
    filter: { since: 0, until: Date.now() + 3_600_000 },
    by: ["key", "model", "status"],
    limit: 100_000,
  });
  const sums = totals.map((total) => {
    const { calls, failedCalls, abandonedCalls } = total;
    const { inputTokens, outputTokens, estimatedTokens } = total;
    const { key, model, status } = total.group;
    const counts = { calls, failedCalls, abandonedCalls };
    const tokens = { inputTokens, outputTokens, estimatedTokens };
    const costs = { cost: total.costNano ?? 0n, unpricedCalls: total.unpricedCalls };
    return [`${key} ${model} ${status}`, { ...counts, ...tokens, ...costs }] as const;
  });
  return Object.fromEntries(sums.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
