import { z } from "zod";
import type { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import { hostname } from "node:os";
import type { LiveReader, RefusalFinder } from "../../control/services.ts";
import type { Refusal, RefusalFilter } from "../../domain/errors/refusal.ts";
import type { ProcessStatus } from "../../control/platform/process-status.ts";
import type { LimitScope, LimitState } from "../../domain/limits/limit-scope.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { Progress } from "../../ledger/spool/spool.ts";
import {
  labelFamilies,
  mergeFamilies,
  renderPage,
  type MetricFamily,
} from "../../telemetry/metrics/families.ts";
import type { ToControl, ToMain } from "../messages.ts";
import type { ThreadLink } from "../thread-link.ts";
import { askSiblings, serveSiblings } from "./siblings.ts";

export interface ProcessPagesOptions {
  readonly dataDir: string;
  readonly number: number;
  /** Refusals of this thread's own listener. */
  readonly refusals: RefusalLog;
  readonly link: ThreadLink<ToMain, ToControl>;
  readonly metrics: { collect(): readonly MetricFamily[] };
  readonly status: () => ProcessStatus;
  /** Public ids of the secrets that calls of this process used lately, the latest first. */
  readonly recentSecrets: () => readonly string[];
  readonly followKeys: () => Promise<unknown>;
  /** How far a spool is stored; undefined unless this process stores it. */
  readonly progressOf: (spool: string) => Progress | undefined;
}

/** Processes of one machine run one version, but for the time of a restart. */
const statusShape = z.custom<ProcessStatus>((value) => hasField(value, "number"));
const familiesShape = z.array(z.custom<MetricFamily>((value) => hasField(value, "series")));
const liveShape = z.custom<LiveFacts>((value) => hasField(value, "gates"));
const refusalsShape = z.array(z.custom<Refusal>((value) => hasField(value, "explanation")));

const metricsTimeoutMs = 2_000;
const refusalsTimeoutMs = 1_000;
const liveTimeoutMs = 1_000;

/**
 * What this process knows for operators (metrics, status, refusals, live facts), and the same of all processes
 * of the machine, which ask each other.
 */
export class ProcessPages implements RefusalFinder, LiveReader {
  readonly machine = hostname();
  readonly #options: ProcessPagesOptions;
  #socket: Disposable | undefined;
  #isLeaving = false;

  constructor(options: ProcessPagesOptions) {
    this.#options = options;
  }

  /** Answers the other processes. `onFailed`: they cannot ask, and this process serves on. */
  start(onFailed: (error: unknown) => void): void {
    const { status, progressOf, followKeys } = this.#options;
    try {
      this.#socket = serveSiblings(this.#options, {
        "/metrics": () => this.#ownLabelled(),
        "/keys-changed": () => followKeys().then(() => true),
        "/status": () => status(),
        "/live": (query) => this.#ownLive(query),
        "/refusals": (query) => {
          const { limit, ...filter } = Object.fromEntries(query);
          return this.#ownRefusals(filter, Number(limit));
        },
        "/progress": (query) => progressOf(query.get("spool") ?? ""),
      });
    } catch (error) {
      onFailed(error);
    }
  }

  /** A successor serves. */
  leave(): void {
    this.#isLeaving = true;
  }

  stop(): void {
    this.#socket?.[Symbol.dispose]();
    this.#socket = undefined;
  }

  /** The metrics of all processes of the machine, each series with a label `process`. */
  async renderAll(): Promise<string> {
    const [own, others] = await Promise.all([
      this.#ownLabelled(),
      this.#ask("/metrics", familiesShape),
    ]);
    return renderPage(mergeFamilies([own, ...others].flat()));
  }

  async statuses(): Promise<readonly ProcessStatus[]> {
    const others = await this.#ask("/status", statusShape);
    const all = [this.#options.status(), ...others];
    return all.toSorted((one, other) => one.number - other.number);
  }

  async facts({ accountIds, publicIds }: Parameters<LiveReader["facts"]>[0]) {
    const query = new URLSearchParams({ secrets: publicIds.join(",") });
    // Empty: of all.
    for (const accountId of accountIds) query.append("account", accountId ?? "");
    const [own, others] = await Promise.all([
      this.#ownLive(query),
      this.#ask(`/live?${query.toString()}`, liveShape),
    ]);
    return [...(own === undefined ? [] : [own]), ...others];
  }

  limits(of: readonly (readonly LimitScope[])[]): Promise<readonly LimitState[]> {
    return this.#options.link.ask("limits.read", of, liveTimeoutMs);
  }

  async find(id: string): Promise<Refusal | undefined> {
    const [found] = await this.list({ id }, 1);
    return found;
  }

  async list(filter: RefusalFilter, limit: number): Promise<readonly Refusal[]> {
    const query = new URLSearchParams({ limit: String(limit) });
    for (const name of ["id", "keyId", "accountId"] as const) {
      const value = filter[name];
      if (value !== undefined) query.set(name, value);
    }
    const [own, others] = await Promise.all([
      this.#ownRefusals(filter, limit),
      this.#ask(`/refusals?${query.toString()}`, refusalsShape),
    ]);
    return newest([...own, ...others.flat()], limit);
  }

  /** Resolves when the other processes of the machine have applied changed keys, or do not answer. */
  async tellKeysChanged(): Promise<void> {
    await this.#ask("/keys-changed", z.unknown());
  }

  /** How far the leader has stored a spool; undefined if nobody says. */
  async askProgress(spool: string): Promise<Progress | undefined> {
    const query = new URLSearchParams({ spool }).toString();
    const shape = z.object({ segment: z.number(), closes: z.number() });
    const [progress] = await this.#ask(`/progress?${query}`, shape);
    return progress;
  }

  /** The metrics of both threads of this process. */
  async collectOwn(): Promise<readonly MetricFamily[]> {
    const { link, metrics } = this.#options;
    const main = await link.ask("metrics.read", undefined, metricsTimeoutMs).catch(() => []);
    return mergeFamilies([...main, ...metrics.collect()]);
  }

  /** A successor has the number of a process that leaves, and would seem to count on from there. */
  async #ownLabelled(): Promise<readonly MetricFamily[]> {
    const { number } = this.#options;
    const label = this.#isLeaving ? `${number} leaving` : `${number}`;
    return labelFamilies(await this.collectOwn(), label);
  }

  #ownLive(query: URLSearchParams): Promise<LiveFacts | undefined> {
    const { link, recentSecrets } = this.#options;
    const accountIds = query.getAll("account").map((id) => id || undefined);
    const wanted = {
      publicIds: query.get("secrets")?.split(",") ?? [],
      recent: accountIds.length === 0 ? undefined : recentSecrets(),
      accountIds,
    };
    return link.ask("live.read", wanted, liveTimeoutMs).catch(() => undefined);
  }

  async #ownRefusals(filter: RefusalFilter, limit: number): Promise<readonly Refusal[]> {
    const { link, refusals } = this.#options;
    const asked = link.ask("refusals", { filter, limit }, refusalsTimeoutMs);
    return newest([...refusals.list(filter, limit), ...(await asked.catch(() => []))], limit);
  }

  /** Answers of another form, as of another version of the program, are left out. */
  async #ask<Shape>(path: string, shape: z.ZodType<Shape>): Promise<readonly Shape[]> {
    const answers = await askSiblings(this.#options, path);
    return answers.flatMap((answer) => {
      const parsed = shape.safeParse(answer);
      return parsed.success ? [parsed.data] : [];
    });
  }
}

function hasField(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && name in value;
}

function newest(refusals: readonly Refusal[], limit: number): readonly Refusal[] {
  return refusals.toSorted((one, other) => other.at - one.at).slice(0, limit);
}
