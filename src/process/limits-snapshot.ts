import { readdirSync, readFileSync, rmSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import {
  accountScopeId,
  guaranteeScopeId,
  isOfEndUser,
  keyScopeId,
} from "../admission/plan-scopes.ts";
import type { Clock } from "../domain/clock.ts";
import { dearestTokens } from "../domain/limits/token-weights.ts";
import { longestGuaranteeSeconds, slotAt } from "../domain/limits/slots.ts";
import type { OpenedCall, UsageRecord } from "../domain/usage/usage.ts";
import { RecordReader } from "../ledger/ingest/record-reader.ts";
import { clearFolder, listProcessFolders } from "../ledger/spool/process-folder.ts";
import {
  listSegments,
  readSnapshotNumber,
  snapshotPath,
  whyUnreadable,
} from "../ledger/spool/segment-files.ts";
import { readCall, type Delivered } from "../ledger/spool/spool-record.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { SpoolWriter } from "../ledger/spool/spool-writer.ts";
import { parseGivenLimits } from "./hand-over.ts";
import type { GivenLimits, OwnLimits } from "./own-limits.ts";
import type { NamedScope, ScopeUse } from "../store/limits/window.ts";

export interface LimitsSnapshotOptions {
  /** The folder of all spools. */
  readonly root: string;
  readonly spool: Pick<SpoolWriter, "folder" | "beginSegment">;
  readonly limits: OwnLimits;
  readonly clock: Clock;
  readonly keys: Pick<KeyRing, "limitScopeOf">;
  readonly onFailed: (error: unknown) => void;
}

const intervalMs = 10_000;

/** The limits of a process at one time, as its spool keeps them. */
interface KeptLimits {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly given: GivenLimits;
}

/**
 * Keeps the limits of this process in its spool, every few seconds, and restores those of the
 * processes that have ended: what they kept, and what their spools recorded later.
 */
export class LimitsSnapshot {
  readonly #options: LimitsSnapshotOptions;
  #stopTimer = (): void => undefined;
  #writing = Promise.resolve();
  /** Folders whose limits this process has now. */
  #left: readonly string[] = [];
  #isStopped = false;

  constructor(options: LimitsSnapshotOptions) {
    this.#options = options;
  }

  /** Continues with the limits of processes that have ended. Call it if none gave its own. */
  restore(): void {
    const { root, spool, onFailed } = this.#options;
    this.#left = listProcessFolders(root).filter(
      (folder) => folder !== spool.folder && readSnapshotNumber(folder) !== undefined,
    );
    const found = this.#left.flatMap((folder) => {
      try {
        return readKept(folder) ?? [];
      } catch (error) {
        onFailed(error);
        return [];
      }
    });
    // Each process that had limits went on where the one before had ended.
    const [newest] = found.toSorted((one, other) => other.kept.at - one.kept.at);
    if (newest !== undefined) this.#restore(newest);
  }

  /** Keeps the limits from now on. The first time, they replace those that were restored. */
  async start(): Promise<void> {
    await this.keep();
    for (const folder of this.#left) forget(folder);
    this.#left = [];
    this.#plan();
  }

  /** Called when all calls are settled. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.keep();
  }

  #plan(): void {
    if (this.#isStopped) return;
    this.#stopTimer = this.#options.clock.schedule(() => {
      void this.keep();
      this.#plan();
    }, intervalMs);
  }

  /** Keeps them now, unless they were given to another process, which keeps them. Never rejects. */
  keep(): Promise<void> {
    const { limits, spool, clock } = this.#options;
    const { folder } = spool;
    if (folder === undefined) return Promise.resolve();
    const begun = limits.isGiven ? undefined : spool.beginSegment();
    // A snapshot keeps the files after it; a full disk needs their room more.
    if (begun === undefined) return this.#afterWriting(() => removeSnapshots(folder));
    // End users may be many, and only the last snapshot keeps no call waiting.
    const given = limits.snapshot(this.#isStopped ? undefined : (id) => !isOfEndUser(id));
    const { uses, calls } = given.state;
    // A process that has admitted nothing leaves nothing.
    const isEmpty = uses.length + calls.length === 0;
    if (isEmpty && this.#isStopped) return this.#afterWriting(() => removeSnapshots(folder));
    // No record follows the last one.
    const number = this.#isStopped ? begun + 1 : begun;
    const text = `${clock.now()}\n${JSON.stringify(given)}`;
    return this.#afterWriting(() => writeSnapshot(folder, number, text));
  }

  #afterWriting(act: () => void | Promise<void>): Promise<void> {
    this.#writing = this.#writing.then(act).catch(this.#options.onFailed);
    return this.#writing;
  }

  #restore({ folder, number, kept }: FoundLimits): void {
    const { limits, clock } = this.#options;
    limits.goOn(kept.given, Math.max(0, clock.now() - kept.at));
    // A process before it may still serve.
    if (kept.given.givers.length > 0) limits.giversLost();
    this.#replay(laterCalls(folder, number, kept.at), kept);
  }

  /** Charges what was admitted after the limits were kept, and settles what ended after that. */
  #replay(later: Iterable<LaterCall>, { at, given }: KeptLimits): void {
    const { limits } = this.#options;
    const { now, calls } = given.state;
    const known = new Set(calls.map(({ callId }) => callId));
    for (const call of later) {
      if (known.has(call.id)) settle(limits, call);
      else limits.include(this.#usesOf(call, now - at));
    }
    // The others were interrupted, and keep what is charged for them.
    for (const id of known) limits.settle(id, Number.NaN);
  }

  #usesOf({ opened, tokens, admittedAt }: LaterCall, aheadMs: number): readonly ScopeUse[] {
    if (opened === undefined || tokens === undefined) return [];
    const { keyId, accountId, capacityClass } = opened;
    const limitScope = this.#options.keys.limitScopeOf(keyId) ?? keyId;
    const isGuarantee = capacityClass === "provisioned";
    const seconds = isGuarantee ? longestGuaranteeSeconds : 0;
    const ids = isGuarantee
      ? [guaranteeScopeId(limitScope)]
      : [keyScopeId(limitScope), accountScopeId(accountId)];
    // Admission came after the arrival: plans count it later, in the operator's favour.
    const slot = slotAt(admittedAt + aheadMs) + (isGuarantee ? 0 : 1);
    const within = Math.min(tokens, reservedOf(opened) ?? tokens);
    const use = (scope: NamedScope, amount: number, debt: number): ScopeUse => ({
      scope,
      slot,
      amounts: [amount],
      debt,
      limit: Number.POSITIVE_INFINITY,
    });
    return ids.flatMap((id) => [
      use({ id, unit: "requests", seconds }, 1, 0),
      use({ id, unit: "tokens", seconds }, within, tokens - within),
    ]);
  }
}

interface FoundLimits {
  readonly folder: string;
  /** The first file of the spool that is later. */
  readonly number: number;
  readonly kept: KeptLimits;
}

/** Undefined: the process kept none. Throws when they cannot be read. */
function readKept(folder: string): FoundLimits | undefined {
  const number = readSnapshotNumber(folder);
  if (number === undefined) return undefined;
  const [at, given = ""] = readFileSync(snapshotPath(folder, number), "utf8").split("\n");
  return { folder, number, kept: { at: Number(at), given: parseGivenLimits(given) } };
}

async function writeSnapshot(folder: string, number: number, text: string): Promise<void> {
  const path = snapshotPath(folder, number);
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
  removeSnapshots(folder, basename(path));
}

function removeSnapshots(folder: string, except?: string): void {
  for (const name of readdirSync(folder)) {
    if (name.includes(".limits") && name !== except) rmSync(join(folder, name), { force: true });
  }
}

/** Another process has these limits now. */
function forget(folder: string): void {
  try {
    removeSnapshots(folder);
    clearFolder(folder);
  } catch {
    // The next start tries again.
  }
}

function laterCalls(folder: string, number: number, keptAt: number): Iterable<LaterCall> {
  const calls = new Map<string, LaterCall>();
  const at = (id: string): LaterCall => {
    let call = calls.get(id);
    if (call === undefined) calls.set(id, (call = new LaterCall(id, keptAt)));
    return call;
  };
  let latest = keptAt;
  for (const segment of listSegments(folder)) {
    // The ingest reports those that cannot be read.
    if (segment.number < number || whyUnreadable(segment.path) !== undefined) continue;
    const reader = new RecordReader(segment.path);
    for (let record = reader.next(true); record !== undefined; record = reader.next(true)) {
      if (record.kind === "close") at(record.record.id).ended = record.record;
      else if (record.kind === "open") {
        const opened = readCall(record.line);
        // Records are written in the order of admissions.
        latest = Math.max(latest, opened?.startedAt ?? 0);
        Object.assign(at(record.id), { opened, admittedAt: latest });
      } else at(record.id).delivered = record.delivered;
    }
    reader.close();
  }
  return calls.values();
}

/** What a spool recorded about a call after the limits were kept. */
class LaterCall {
  readonly id: string;
  opened: OpenedCall | undefined;
  ended: UsageRecord | undefined;
  delivered: Delivered | undefined;
  /** The latest known time before its admission, in milliseconds since the epoch. */
  admittedAt: number;

  constructor(id: string, keptAt: number) {
    this.id = id;
    this.admittedAt = keptAt;
  }

  /** What it used of the limits, or may have used; undefined: it reached no upstream. */
  get tokens(): number | undefined {
    if (this.ended !== undefined) {
      const { attempts, inputTokens, outputTokens, planTokens } = this.ended;
      return attempts === 0 ? undefined : (planTokens ?? inputTokens + outputTokens);
    }
    const { inputTokens = 0, weights } = this.opened ?? {};
    const used = dearestTokens(weights, inputTokens, this.delivered?.outputTokens ?? 0);
    return Math.max(reservedOf(this.opened) ?? 0, used);
  }
}

/** In tokens of the limits. */
function reservedOf(opened: OpenedCall | undefined): number | undefined {
  if (opened?.reservedTokens === undefined) return undefined;
  const { weights, inputTokens, reservedTokens } = opened;
  return dearestTokens(weights, inputTokens, reservedTokens - inputTokens);
}

function settle(limits: OwnLimits, { id, ended, delivered, tokens, opened }: LaterCall): void {
  if (ended !== undefined) limits.settle(id, tokens ?? 0);
  else if (delivered !== undefined && opened !== undefined && tokens !== undefined) {
    limits.use(id, tokens);
  }
}
