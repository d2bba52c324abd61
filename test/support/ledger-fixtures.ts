import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type {
  OpenedCall,
  UsageRecord,
  CallLedger,
  RecordFailure,
} from "../../src/domain/usage/usage.ts";
import type { LedgerEvents, LedgerFlow } from "./whole-ledger.ts";
import type { UsageStore } from "../../src/store/store.ts";

export function openedCall(id: string, values: Partial<OpenedCall> = {}): OpenedCall {
  return {
    id,
    startedAt: 1_700_000_000_000,
    environment: "test",
    accountId: "acc_1",
    applicationId: "app_1",
    application: "search",
    keyId: "key_a",
    model: "alpha-sonnet-4",
    dialect: "chat",
    capacityClass: "on-demand",
    isStreamed: true,
    inputTokens: 80,
    ...values,
  };
}

export function closedCall(id: string, values: Partial<UsageRecord> = {}): UsageRecord {
  return {
    ...openedCall(id),
    target: "up/m",
    outputTokens: 7,
    cachedInputTokens: 0,
    usageSource: "upstream",
    outcome: "completed",
    status: 200,
    code: undefined,
    attempts: 1,
    firstEventMs: 12.5,
    durationMs: 250,
    ...values,
  };
}

/** A ledger that keeps its calls, for tests of its users. */
export class KeptLedger implements CallLedger {
  hasRoom = true;
  /** Whether calls can be opened. */
  takes = true;
  /** When its records are written. */
  written: Promise<RecordFailure> = Promise.resolve(undefined);
  readonly opened: OpenedCall[] = [];
  readonly checkpoints: { readonly callId: string; readonly outputTokens: number }[] = [];
  readonly closed: UsageRecord[] = [];

  open(call: OpenedCall): Promise<RecordFailure> {
    if (!this.takes) return Promise.resolve(new Error("no room"));
    this.opened.push(call);
    return this.written;
  }

  checkpoint(callId: string, { outputTokens }: { readonly outputTokens: number }): void {
    this.checkpoints.push({ callId, outputTokens });
  }

  close(record: UsageRecord): Promise<RecordFailure> {
    this.closed.push(record);
    return this.written;
  }
}

/** A usage store whose failures the test sets. */
export class FallibleStore implements UsageStore {
  readonly rows = new Map<string, UsageRecord>();
  readonly batchSizes: number[] = [];
  /** Thrown instead of storing anything. */
  refuse: (records: readonly UsageRecord[]) => Error | undefined = () => undefined;
  /** Thrown although everything is stored. */
  forgetToSay: () => Error | undefined = () => undefined;

  insert(records: readonly UsageRecord[]): Promise<void> {
    this.batchSizes.push(records.length);
    const refusal = this.refuse(records);
    if (refusal !== undefined) return Promise.reject(refusal);
    for (const record of records) {
      if (!this.rows.has(record.id)) this.rows.set(record.id, record);
    }
    const failure = this.forgetToSay();
    return failure === undefined ? Promise.resolve() : Promise.reject(failure);
  }

  prune(): Promise<number> {
    return Promise.resolve(0);
  }

  eraseEndUsers(): Promise<number> {
    return Promise.resolve(0);
  }

  erase(): Promise<number> {
    return Promise.resolve(0);
  }
}

export const ledgerFlow: LedgerFlow = {
  batchRows: 10,
  flushIntervalMs: 5,
  sync: "none",
  spoolLimitBytes: 10_000_000,
  segmentBytes: 1_000_000,
};

/** The events that a ledger reported, in order, with their contents. */
export class LedgerLog implements LedgerEvents {
  readonly events: (readonly [string, ...unknown[]])[] = [];

  /** The contents of every event with this name. */
  of(name: keyof LedgerEvents): readonly (readonly unknown[])[] {
    return this.events.filter(([each]) => each === name).map(([, ...details]) => details);
  }

  writeFailed(...details: unknown[]): void {
    this.events.push(["writeFailed", ...details]);
  }
  written(): void {
    this.events.push(["written"]);
  }
  spoolFailed(...details: unknown[]): void {
    this.events.push(["spoolFailed", ...details]);
  }
  spoolRecovered(): void {
    this.events.push(["spoolRecovered"]);
  }
  nearlyFull(...details: unknown[]): void {
    this.events.push(["nearlyFull", ...details]);
  }
  hasRoomAgain(): void {
    this.events.push(["hasRoomAgain"]);
  }
  replayed(...details: unknown[]): void {
    this.events.push(["replayed", ...details]);
  }
  fileSkipped(...details: unknown[]): void {
    this.events.push(["fileSkipped", ...details]);
  }
  damaged(...details: unknown[]): void {
    this.events.push(["damaged", ...details]);
  }
  deadLettered(...details: unknown[]): void {
    this.events.push(["deadLettered", ...details]);
  }
  lost(...details: unknown[]): void {
    this.events.push(["lost", ...details]);
  }
}

/** Seeded random numbers in [0, 1). */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Paths of the spool files under a folder, damaged ones included, in their order. */
export function spoolPaths(root: string): readonly string[] {
  const paths = readdirSync(root, { encoding: "utf8", recursive: true });
  const files = paths.filter((path) => /\.(?:spool|damaged)$/.test(path));
  return files.map((path) => join(root, path)).toSorted();
}

export function spoolNames(root: string): readonly string[] {
  const names = spoolPaths(root).map((path) => basename(path));
  return names.toSorted();
}

/** Copies the spools of all processes as if the processes had died now. */
export function copySpools(root: string, target: string): void {
  cpSync(root, target, { recursive: true, filter: (path) => basename(path) !== "lock" });
}

/** A new folder that is deleted with the test. */
export class TestFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "sluice-spool-"));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
