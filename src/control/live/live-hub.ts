import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import { liveGatewaySchema, type LiveTopic, newestCallSchema } from "../contract/live.ts";
import { viewRow } from "../platform/processes.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";
import { readKeyLive } from "./live-operations.ts";
import { viewGates, viewKeys, viewProcesses, viewTargets } from "./live-view.ts";

/** Items as JSON, by id. */
type Items = ReadonlyMap<string, string>;
/** `stale` has the topics that could not be read: their items are earlier ones. */
type Snapshot = ReadonlyMap<LiveTopic | "stale", Items>;
const noItems: Items = new Map();

export interface WantedLive {
  readonly call: Pick<AdminCall, "principal" | "isStillSignedIn">;
  readonly topics: readonly LiveTopic[];
  /** For the topic `key`; the principal may see them. */
  readonly keyIds: readonly string[];
}

const tickMs = 1_000;
/** An older call is not told of. */
const newestCallMs = 3_600_000;
/** Between looks whether who watches is still signed in. */
const recheckMs = 4_000;
const mostConnections = 200;
const mostOfOneUser = 10;

/**
 * Reads what is live once a second, as long as somebody watches: once for each audience (everything,
 * or one account) and each key, however many watch it.
 */
export class LiveHub {
  readonly #services: AdminServices;
  readonly #watchers = new Set<LiveWatcher>();
  /** Of the last second, by audience. */
  #snapshots: ReadonlyMap<string, Snapshot> = new Map();
  #keys: ReadonlyMap<string, string> = new Map();
  #tick = 0;
  #isClosed = false;
  #stopReads: (() => void) | undefined;
  #stopRechecks: (() => void) | undefined;

  constructor(services: AdminServices) {
    this.#services = services;
  }

  /** Throws 429 when too many watch, and 503 once it is closed. */
  watch(wanted: WantedLive): FrameSource {
    if (this.#isClosed) {
      throw new GatewayError("model_unavailable", {
        message: "This process is ending. Retry your request; another one answers it.",
        headers: { "retry-after": "1" },
      });
    }
    const ofUser = [...this.#watchers].filter(({ user }) => user === userOf(wanted)).length;
    if (ofUser >= mostOfOneUser || this.#watchers.size >= mostConnections) {
      throw new GatewayError("too_many_requests", {
        message: "Too many live streams are open. Close some, and retry your request.",
        headers: { "retry-after": "5" },
      });
    }
    const watcher = new LiveWatcher(wanted, () => this.#watchers.delete(watcher));
    this.#watchers.add(watcher);
    this.#stopReads ??= this.#plan(() => this.#run(), 0);
    this.#stopRechecks ??= this.#plan(() => this.#recheck(), recheckMs);
    return watcher;
  }

  /** Ends all streams; those who watch connect again. */
  close(): void {
    this.#isClosed = true;
    this.#stopReads?.();
    this.#stopRechecks?.();
    for (const watcher of this.#watchers) watcher.end("");
  }

  #plan(run: () => Promise<void>, delayMs: number): () => void {
    return this.#services.clock.schedule(() => void run(), delayMs);
  }

  /** Undefined, without a plan, once nobody watches. */
  #planNext(run: () => Promise<void>, delayMs: number): (() => void) | undefined {
    return this.#isClosed || this.#watchers.size === 0 ? undefined : this.#plan(run, delayMs);
  }

  async #run(): Promise<void> {
    this.#tick += 1;
    const watchers = [...this.#watchers];
    const keyIds = new Set(watchers.flatMap((watcher) => watcher.keyIds));
    const failedKeys = new Set<string>();
    const keys = new Map<string, string>();
    const snapshots = new Map<string, Snapshot>();
    const byAudience = Map.groupBy(watchers, ({ accountId = "" }) => accountId);
    await Promise.all([
      ...Array.from(keyIds, async (id) => {
        const key = await this.#readKey(id).catch(() => void failedKeys.add(id));
        const known = key ?? this.#keys.get(id);
        if (known !== undefined) keys.set(id, known);
      }),
      ...Array.from(byAudience, async ([audience, of]) => {
        const topics = new Set(of.flatMap((watcher) => watcher.topics));
        snapshots.set(audience, await this.#read(audience || undefined, topics));
      }),
    ]);
    this.#keys = keys;
    this.#snapshots = snapshots;
    for (const watcher of watchers) {
      const snapshot = snapshots.get(watcher.accountId ?? "") ?? new Map();
      watcher.offer(ownOf(snapshot, watcher, { keys, failedKeys }), this.#tick);
    }
    this.#stopReads = this.#planNext(() => this.#run(), tickMs);
  }

  async #recheck(): Promise<void> {
    // Who cannot be looked up is looked up again.
    await Promise.allSettled(
      Array.from(this.#watchers, async (watcher) => {
        if (!(await watcher.isStillSignedIn())) watcher.end("event: end\ndata: {}\n\n");
      }),
    );
    this.#stopRechecks = this.#planNext(() => this.#recheck(), recheckMs);
  }

  async #read(accountId: string | undefined, topics: ReadonlySet<LiveTopic>): Promise<Snapshot> {
    const { live, platform, clock } = this.#services;
    const publicIds = topics.has("keys") ? {} : { publicIds: [] };
    const facts = await live.facts({ accountId, ...publicIds });
    const readers: Record<LiveTopic, () => Items | Promise<Items>> = {
      gateways: async () => {
        const rows = await this.#services.processRows();
        const views = rows.map((row) => liveGatewaySchema.parse(viewRow(row)));
        return byId(views, ({ id }) => id);
      },
      processes: () => byId(viewProcesses(facts), ({ process }) => String(process)),
      targets: () => byId(viewTargets(platform(), facts), ({ id }) => id),
      gates: () => byId(viewGates(facts), ({ kind, name }) => `${kind}:${name}`),
      keys: async () => byId(await viewKeys(live, facts, clock.now()), (use) => use.key_id),
      calls: () => this.#readNewestCall(accountId),
      // Of one key alone: `#readKey`.
      key: () => new Map(),
    };
    const snapshot = new Map<LiveTopic | "stale", Items>();
    const stale = new Map<string, string>();
    for (const topic of topics) {
      try {
        snapshot.set(topic, await readers[topic]());
      } catch {
        stale.set(topic, "true");
        const earlier = this.#snapshots.get(accountId ?? "")?.get(topic);
        if (earlier !== undefined) snapshot.set(topic, earlier);
      }
    }
    return snapshot.set("stale", stale);
  }

  async #readNewestCall(accountId: string | undefined): Promise<Items> {
    const { reports, clock } = this.#services;
    const now = clock.now();
    const filter = { since: now - newestCallMs, until: now + newestCallMs, accountId };
    const { items } = await reports.calls(filter, { limit: 1 });
    return byId(
      items.map((call) => viewAs(newestCallSchema, call)),
      () => "newest",
    );
  }

  async #readKey(id: string): Promise<string> {
    return JSON.stringify(await readKeyLive({ id }, this.#services));
  }
}

/** One stream: the whole first, then what has changed. A slow reader gets only the newest. */
class LiveWatcher extends WaitingReader implements FrameSource {
  readonly topics: readonly LiveTopic[];
  readonly keyIds: readonly string[];
  readonly accountId: string | undefined;
  readonly user: string;
  readonly isStillSignedIn: () => Promise<boolean>;
  readonly cancel: () => void;
  #newest: { readonly snapshot: Snapshot; readonly tick: number } | undefined;
  #sent: Snapshot | undefined;
  /** Undefined until it ends. */
  #lastFrame: string | undefined;

  constructor(wanted: WantedLive, cancel: () => void) {
    super();
    this.topics = wanted.topics;
    this.keyIds = wanted.keyIds;
    this.accountId = wanted.call.principal.accountId;
    this.user = userOf(wanted);
    this.isStillSignedIn = wanted.call.isStillSignedIn;
    this.cancel = cancel;
  }

  get isOver(): boolean {
    return this.#lastFrame === "";
  }

  offer(snapshot: Snapshot, tick: number): void {
    this.#newest = { snapshot, tick };
    this.wake();
  }

  end(lastFrame: string): void {
    this.#lastFrame = lastFrame;
    this.wake();
  }

  take(): string | undefined {
    if (this.#lastFrame !== undefined) {
      const frame = this.#lastFrame || undefined;
      this.#lastFrame = "";
      return frame;
    }
    if (this.#newest === undefined) return undefined;
    const { snapshot, tick } = this.#newest;
    this.#newest = undefined;
    const sent = this.#sent;
    const told = [...this.topics, "stale"] as const;
    const parts = told.flatMap((topic) => changeOf(topic, snapshot, sent) ?? []);
    this.#sent = snapshot;
    if (parts.length === 0) return undefined;
    const event = sent === undefined ? "full" : "change";
    return `id: ${tick}\nevent: ${event}\ndata: {${parts.join(",")}}\n\n`;
  }
}

/** What differs in a topic, as a field of JSON; null for an item that is gone. */
function changeOf(
  topic: LiveTopic | "stale",
  snapshot: Snapshot,
  sent: Snapshot | undefined,
): string | undefined {
  const items = snapshot.get(topic);
  const before = sent?.get(topic) ?? (topic === "stale" ? noItems : undefined);
  if (items === undefined) return undefined;
  const changed = [...items].filter(([id, item]) => before?.get(id) !== item);
  const gone = [...(before?.keys() ?? [])].filter((id) => !items.has(id));
  if (before !== undefined && changed.length + gone.length === 0) return undefined;
  const fields = [...changed, ...gone.map((id) => [id, "null"] as const)];
  return `"${topic}":{${fields.map(([id, item]) => `${JSON.stringify(id)}:${item}`).join(",")}}`;
}

/** What one stream tells: of its own topics and keys. */
function ownOf(
  snapshot: Snapshot,
  { topics, keyIds }: Pick<WantedLive, "topics" | "keyIds">,
  { keys, failedKeys }: { readonly keys: Items; readonly failedKeys: ReadonlySet<string> },
): Snapshot {
  const own = new Map(snapshot);
  const stale = new Map(snapshot.get("stale"));
  for (const topic of stale.keys()) if (!topics.some((each) => each === topic)) stale.delete(topic);
  if (keyIds.some((id) => failedKeys.has(id))) stale.set("key", "true");
  if (keyIds.length > 0) {
    own.set(
      "key",
      new Map(
        keyIds.flatMap((id) => {
          const key = keys.get(id);
          return key === undefined ? [] : [[id, key] as const];
        }),
      ),
    );
  }
  return own.set("stale", stale);
}

function byId<Item>(items: readonly Item[], idOf: (item: Item) => string): Items {
  return new Map(items.map((item) => [idOf(item), JSON.stringify(item)]));
}

function userOf({ call: { principal } }: Pick<WantedLive, "call">): string {
  return principal.userId ?? principal.kind;
}
